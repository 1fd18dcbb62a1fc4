"""Operations of a worker on one pipeline: facts, checks, the editor, dead letters."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock import app, checks
from penstock.control import PipelineControl
from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError, PlanError, flatten_errors
from penstock.core.location import Location
from penstock.language import service
from penstock.language.document import Document
from penstock.language.model import Position
from penstock.plan.explain import explain
from penstock.plan.functions.decorated import DecoratedFile
from penstock.plan.model import Plan
from penstock.runtime.dead_letters.selection import Selection
from penstock.server.workers import connection_operations
from penstock.spec.dialects.conversions import convert_export
from penstock.spec.documents.files import read_text, read_unprocessed, unsaved
from penstock.spec.documents.profiles import used_profiles
from penstock.spec.front_end import language_of
from penstock.spec.yaml.writer import convert as to_yaml

Facts = dict[str, Any]


def describe(file: Path) -> Facts:
    """Returns the name, nodes, state directory and errors of a pipeline, from its text alone."""
    partial, errors = app.partial_plan(file)
    facts: Facts = {
        "name": file.stem, "language": language_of(str(file)), "state": None, "nodes": [],
        "queries": [], "bounded": None, "connections": [], "share": None,
        "errors": [each for error in errors for each in to_dicts(error)], "warnings": [],
    }  # fmt: skip
    if partial is not None:
        facts |= _facts_of(partial.plan)
    return facts


def _facts_of(plan: Plan) -> Facts:
    explanation = explain(plan)
    return {
        "name": plan.name, "state": str(plan.state), "bounded": plan.bounded,
        "connections": used_profiles(plan.pipeline), "share": plan.spec.runtime.share,
        "stored": plan.location.url is not None,
        "nodes": [asdict(node) for node in explanation.nodes],
        "queries": [asdict(query) for query in explanation.queries],
        "warnings": [each for warning in plan.warnings for each in to_dicts(warning)],
    }  # fmt: skip


def check(file: Path, level: checks.Level = "static", timeout: float = 30.0) -> Facts:
    """Returns the result of a check: errors with fixes, warnings, changes of the plan, columns.

    `changes` are those that the state supports and those that it does not.
    """
    diagnosis = service.diagnose(_document(file), level=level, timeout=timeout)
    result = diagnosis.result
    return {
        "level": level,
        "ok": not result.errors,
        "name": result.plan.name if result.plan else None,
        "errors": [_with_fixes(error, diagnosis) for error in result.errors],
        "warnings": [_with_fixes(error, diagnosis) for error in result.warnings],
        "changes": [asdict(change) for change in result.changes],
        "nodes": {
            name: {**asdict(node), "columns": node.columns and [asdict(c) for c in node.columns]}
            for name, node in result.nodes.items()
        },
    }


def _with_fixes(error: PenstockError, diagnosis: service.Diagnosis) -> Facts:
    """Returns an error with its fixes, and the status of HTTP that it has alone."""
    (facts,) = to_dicts(error)
    fixes = [asdict(fix) for fix in diagnosis.fixes_of(error)]
    return {**facts, "status": error.policy.http_status, "fixes": fixes}


def complete(file: Path, line: int, column: int) -> Facts:
    """Returns the proposals at a position of a text."""
    return asdict(service.complete(_document(file), Position(line, column)))


def hover(file: Path, line: int, column: int) -> Facts:
    """Returns the documentation of the word at a position: `hover` is None without any."""
    found = service.hover(_document(file), Position(line, column))
    return {"hover": found and asdict(found)}


def find_definition(file: Path, line: int, column: int) -> Facts:
    """Returns the place where the name at a position is defined: `target` is None without any."""
    found = service.definition(_document(file), Position(line, column))
    return {"target": found and asdict(found)}


def list_symbols(file: Path) -> Facts:
    """Returns the symbols of a text."""
    return {"symbols": [asdict(symbol) for symbol in service.symbols(_document(file))]}


def _document(file: Path) -> Document:
    return Document(file, read_unprocessed(file))


def check_functions(file: Path, others: Mapping[str, str]) -> Facts:
    """Returns the signatures and the errors of a file of functions. Does not run the file.

    `others` are the files of the server by the names of their functions, in lower case.
    """
    decorated = DecoratedFile(file, file.name, read_text(file))
    functions = decorated.functions()
    errors = list(decorated.errors)
    errors += [
        PlanError(
            f'the functions "{others[each.name.lower()]}" of the server have "{each.name}"',
            code="duplicate-name", hint="Choose another name for the function.",
        )
        for each in functions
        if each.name.lower() in others
    ]  # fmt: skip
    return {
        "ok": not errors, "signatures": [each.signature for each in functions],
        "errors": [facts for error in errors for facts in to_dicts(error)],
    }  # fmt: skip


def convert(file: Path) -> Facts:
    """Returns the language of a file, and its text as YAML.

    The texts of a dialect of SQL have the language of that dialect.
    """
    exported = convert_export(str(file))
    if exported is not None:
        return {"language": "arroyo", "text": exported}
    language = language_of(str(file))
    return {"language": language, "text": to_yaml([str(file)])}


def request_stop(file: Path) -> Facts:
    """Requests a stop of the run that has the state, also on another machine. Does not wait."""
    owner = PipelineControl.of(app.plan(file)).request_stop()
    return {"owner": None if owner is None else asdict(owner)}


def list_dead_letters(
    file: Path, node: str | None = None, code: str | None = None, limit: int = 50,
    before: str | None = None,
) -> Facts:  # fmt: skip
    """Returns a page of dead letters of a selection, and the number of each node and code."""
    plan = app.plan(file)
    found = PipelineControl.of(plan).dead_letters(Selection(node=node, code=code))
    page = found.page(limit, before)
    return {
        "places": {name: _place(each.where) for name, each in plan.nodes.items()},
        "total": len(found),
        "counts": [asdict(count) for count in found.counts()],
        "letters": [letter_facts(each.to_json()) for each in page.letters],
        "next": page.next,
    }


def show_dead_letter(file: Path, letter: str) -> Facts:
    """Returns one dead letter."""
    return letter_facts(PipelineControl.of(app.plan(file)).dead_letter(letter).to_json())


def remove_dead_letters(file: Path, ids: list[str]) -> Facts:
    """Removes dead letters for good, and returns the number of those that existed."""
    return {"removed": PipelineControl.of(app.plan(file)).remove_dead_letters(ids)}


def replay_dead_letters(file: Path, ids: list[str] | None = None, force: bool = False) -> Facts:
    """Replays dead letters from the nodes where they failed, while the pipeline does not run."""
    return asdict(PipelineControl.of(app.plan(file)).replay(ids, force=force))


def _place(where: Location | None) -> Facts | None:
    """Returns the file name and the line of a node; None for a node without a place."""
    return {"file": Path(where.file).name, "line": where.line} if where else None


def letter_facts(facts: Mapping[str, Any]) -> Facts:
    """Returns the facts of a dead letter with its time as ISO 8601."""
    return {**facts, "time": facts["time"].isoformat()}


OPERATIONS: Mapping[str, Callable[..., Facts]] = {
    function.__name__: function
    for function in (
        describe, check, check_functions, convert, complete, hover, find_definition, list_symbols,
        request_stop, list_dead_letters, show_dead_letter, remove_dead_letters, replay_dead_letters,
        connection_operations.test_connection, connection_operations.list_tables,
        connection_operations.list_topics, connection_operations.describe_tables,
        connection_operations.check_access, connection_operations.sample_topic,
    )
}  # fmt: skip


def perform(request: Mapping[str, Any]) -> Facts:
    """Performs a request: `operation`, `file`, its unsaved `text`, variables and arguments.

    The answer has `result`, or `errors` with the `status` of HTTP.
    """
    arguments = dict(request["arguments"])
    file = Path(request["file"])
    text = request.get("text")
    try:
        with unsaved({} if text is None else {file: text}), variables_set(request["variables"]):
            return {"result": OPERATIONS[request["operation"]](file, **arguments)}
    except PenstockError as error:
        first = flatten_errors(error)[0]
        return {"errors": to_dicts(error), "status": first.policy.http_status}


@contextmanager
def variables_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets variables of the environment during the block."""
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
