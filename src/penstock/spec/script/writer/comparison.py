"""Comparison of a pipeline with the script that was written from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.core.errors import PenstockError, SpecError, ValidationErrors, flatten_errors
from penstock.spec.script.document import parse_script
from penstock.spec.script.tokens import split_statements, tokenize
from penstock.spec.script.writer.columns import split_columns
from penstock.spec.script.writer.functions import parameters
from penstock.spec.script.writer.values import Statement, keep_in_yaml_hint, unsupported_error
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import File

SECTIONS = ("functions", "sources", "transforms", "sinks")
SETTINGS = ("name", "description", "function_files", "plugins", "runtime")
_DEFAULTS = {"kind": "scalar", "skip_nulls": False, "deterministic": True}
_NAME = "<script>"


def differences(document: Document, statements: list[Statement]) -> Iterator[PenstockError]:
    """Yields the errors of parts that the script does not state, or states otherwise."""
    errors = [error for statement in statements for error in _check_statement(statement)]
    if errors:
        yield from errors
        return
    text = "\n".join(statement.text for statement in statements)
    try:
        script = parse_script(text, _NAME, document.root.base)
    except (SpecError, ValidationErrors) as error:
        for each in flatten_errors(error):
            origin = _origin(each, statements)
            yield unsupported_error(
                f"a SQL script cannot state this: {each.message}", origin.origin
            )
        return
    expected, found = canonical(document.root.data()), canonical(script.root.data())
    for section in SECTIONS:
        yield from _compare_nodes(document, section, expected[section], found[section])
    for name in SETTINGS:
        if expected[name] != found[name]:
            yield unsupported_error(
                f'"{name}" would change in a SQL script',
                document.key((name,)),
                keep_in_yaml_hint(name),
            )


def _check_statement(statement: Statement) -> Iterator[PenstockError]:
    """Yields the error of a statement that cannot be read, or whose query ends before its end."""
    try:
        parts = [*split_statements(tokenize(File(_NAME, statement.text, Path())))]
    except SpecError as error:
        yield unsupported_error(
            f"a SQL script cannot state this: {error.message}", statement.origin
        )
        return
    if len(parts) > 1 and not statement.text.startswith("SET "):
        yield unsupported_error(
            "a statement of a SQL script ends at the first semicolon",
            statement.origin,
            "write one query in each transform",
        )


def _compare_nodes(
    document: Document, section: str, expected: dict[str, Any], found: dict[str, Any]
) -> Iterator[PenstockError]:
    """Yields an error for each changed node. A further node of the script is part of a change."""
    for name, old in expected.items():
        new = found.get(name, {})
        options = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        if options:
            yield unsupported_error(
                f'"{options[0]}" of "{name}" would change in a SQL script',
                document.key((section, name, options[0])),
                keep_in_yaml_hint(f'"{name}"'),
            )
    if expected.keys() >= found.keys():
        return
    if all(found.get(name) == node for name, node in expected.items()):
        further = ", ".join(name for name in found if name not in expected)
        yield unsupported_error(f"a SQL script would add {further}", document.key((section,)))


def canonical(data: dict[str, Any]) -> dict[str, Any]:
    """Returns the data of a pipeline in one form: types by column, lists of names, trimmed SQL."""
    sections: dict[str, dict[str, Any]] = {
        section: {name: dict(node) for name, node in (data.get(section) or {}).items()}
        for section in SECTIONS
    }
    for node in sections["sources"].values():
        node.pop("connection", None)
        if (columns := split_columns(node.get("schema"))) is not None:
            node["schema"] = columns
        _as_list(node, "primary_key")
    for node in sections["sinks"].values():
        node.pop("connection", None)
        _as_list(node, "primary_key")
        _as_list(node, "from")
    for node in sections["transforms"].values():
        _trim(node)
        if isinstance(node.get("storage"), dict):
            node["storage"] = {**node["storage"]}
            node["storage"].pop("connection", None)
    for name, node in sections["functions"].items():
        _trim(node)
        node["args"] = parameters(node.get("args"))
        if node.get("kind") == "table" and (columns := split_columns(node.get("returns"))):
            node["returns"] = columns
        sections["functions"][name] = {
            key: value for key, value in node.items() if _DEFAULTS.get(key, ...) != value
        }
    return {**sections, **{name: data.get(name) or None for name in SETTINGS}}


def query_text(text: str) -> str:
    """Returns a query from its first to its last token, without semicolons at its end."""
    try:
        tokens = tokenize(File("", text, Path()))
    except SpecError:
        return text
    while tokens and tokens[-1].is_sign(";"):
        tokens.pop()
    return text[tokens[0].start : tokens[-1].end] if tokens else ""


def _trim(node: dict[str, Any]) -> None:
    if isinstance(node.get("sql"), str):
        node["sql"] = query_text(str.__str__(node["sql"]))


def _as_list(node: dict[str, Any], key: str) -> None:
    if isinstance(node.get(key), str):
        node[key] = [node[key]]


def _origin(error: PenstockError, statements: list[Statement]) -> Statement:
    """Returns the statement at the line of an error."""
    line = error.where.line if error.where else 1
    for statement in statements:
        line -= statement.text.count("\n") + 1
        if line < 1:
            return statement
    return statements[-1]
