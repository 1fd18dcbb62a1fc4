"""Operations of a worker on one pipeline: facts, checks, dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from penstock import app, checks
from penstock.control import PipelineControl
from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError, flatten_errors
from penstock.core.location import Location
from penstock.plan.explain import explain
from penstock.plan.model import Plan
from penstock.runtime.dead_letters.selection import Selection
from penstock.spec.dialects.conversions import convert_export
from penstock.spec.documents.files import unsaved
from penstock.spec.front_end import language_of
from penstock.spec.yaml.writer import convert as to_yaml

Facts = dict[str, Any]


def describe(file: Path) -> Facts:
    """Returns the name, nodes, state directory and errors of a pipeline, from its text alone."""
    partial, errors = app.partial_plan(file)
    facts: Facts = {
        "name": file.stem, "language": language_of(str(file)), "state": None, "nodes": [],
        "queries": [], "bounded": None,
        "errors": [each for error in errors for each in to_dicts(error)], "warnings": [],
    }  # fmt: skip
    if partial is not None:
        facts |= _facts_of(partial.plan)
    return facts


def _facts_of(plan: Plan) -> Facts:
    explanation = explain(plan)
    return {
        "name": plan.name, "state": str(plan.state), "bounded": plan.bounded,
        "nodes": [asdict(node) for node in explanation.nodes],
        "queries": [asdict(query) for query in explanation.queries],
        "warnings": [each for warning in plan.warnings for each in to_dicts(warning)],
    }  # fmt: skip


def check(file: Path, level: checks.Level = "static", timeout: float = 30.0) -> Facts:
    """Returns the result of a check: errors, warnings, changes since the last run, columns.

    `changes` are those that the state supports and those that it does not.
    """
    result = checks.check(file, level=level, timeout=timeout)
    return {
        "level": level,
        "ok": not result.errors,
        "name": result.plan.name if result.plan else None,
        "errors": [each for error in result.errors for each in to_dicts(error)],
        "warnings": [each for error in result.warnings for each in to_dicts(error)],
        "changes": [asdict(change) for change in result.changes],
        "nodes": {
            name: {**asdict(node), "columns": node.columns and [asdict(c) for c in node.columns]}
            for name, node in result.nodes.items()
        },
    }


def convert(file: Path) -> Facts:
    """Returns the language of a file, and its text as YAML.

    The texts of a dialect of SQL have the language of that dialect.
    """
    exported = convert_export(str(file))
    if exported is not None:
        return {"language": "arroyo", "text": exported}
    language = language_of(str(file))
    return {"language": language, "text": to_yaml([str(file)])}


def list_dead_letters(
    file: Path, node: str | None = None, code: str | None = None, limit: int = 50
) -> Facts:
    """Returns the newest dead letters of a selection, and the number of each node and code."""
    plan = app.plan(file)
    found = PipelineControl.of(plan).dead_letters(Selection(node=node, code=code))
    return {
        "places": {name: _place(each.where) for name, each in plan.nodes.items()},
        "total": len(found),
        "counts": [asdict(count) for count in found.counts()],
        "letters": [letter_facts(each.to_json()) for each in found.newest(limit)],
    }


def show_dead_letter(file: Path, letter: str) -> Facts:
    """Returns one dead letter."""
    return letter_facts(PipelineControl.of(app.plan(file)).dead_letter(letter).to_json())


def remove_dead_letters(file: Path, ids: list[str]) -> Facts:
    """Removes dead letters for good."""
    PipelineControl.of(app.plan(file)).remove_dead_letters(ids)
    return {"removed": len(ids)}


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
        describe, check, convert, list_dead_letters, show_dead_letter, remove_dead_letters,
        replay_dead_letters,
    )
}  # fmt: skip


def perform(request: Mapping[str, Any]) -> Facts:
    """Performs a request: `operation`, `file`, its unsaved `text`, and arguments.

    The answer has `result`, or `errors` with the `status` of HTTP.
    """
    arguments = dict(request["arguments"])
    file = Path(request["file"])
    text = request.get("text")
    try:
        with unsaved({} if text is None else {file: text}):
            return {"result": OPERATIONS[request["operation"]](file, **arguments)}
    except PenstockError as error:
        first = flatten_errors(error)[0]
        return {"errors": to_dicts(error), "status": first.policy.http_status}
