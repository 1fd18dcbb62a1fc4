"""Functions as `CREATE FUNCTION`, `CREATE AGGREGATE FUNCTION` and `CREATE MACRO`."""

from __future__ import annotations

from typing import Any

from penstock.spec.script.writer.values import (
    Statement,
    assignments,
    identifier,
    unsupported_error,
)
from penstock.spec.tree.nodes import Entry, MappingNode

_CLAUSES = ("kind", "args", "returns", "code", "sql", "skip_nulls", "deterministic")


def function_statement(function: Entry, node: MappingNode) -> Statement:
    """Returns the statement of a function. Raises SpecError."""
    options = node.data()
    types = parameters(options.get("args") or {})
    name = identifier(function.name)
    is_macro = bool(types) and None in types.values()
    kind = options.get("kind")
    if is_macro:
        _check_macro(function, node)
        text = f"CREATE MACRO {name}({_parameters(types)}) AS\n{str(options['sql']).strip()};"
        return Statement(text, function.key.location)
    noun = "AGGREGATE FUNCTION" if kind == "aggregate" else "FUNCTION"
    lines = [f"CREATE {noun} {name}({_parameters(types)})"]
    if returns := options.get("returns"):
        lines.append(f"RETURNS TABLE ({returns})" if kind == "table" else f"RETURNS {returns}")
    if options.get("skip_nulls") is True:
        lines.append("RETURNS NULL ON NULL INPUT")
    if options.get("deterministic") is False:
        lines.append("NOT DETERMINISTIC")
    settings = [
        f"{path} = {value}"
        for entry in node.entries
        if entry.name not in _CLAUSES
        for path, value in assignments([entry.name], entry.value)
    ]
    if settings:
        lines.append(f"WITH ({', '.join(settings)})")
    lines.append(_body(function, options))
    return Statement("\n".join(lines) + ";", function.key.location)


def parameters(args: Any) -> dict[str, str | None]:
    """Returns the types of parameters by name; None for a parameter without a type."""
    if isinstance(args, list):
        return dict.fromkeys(map(str, args))
    return dict(args) if isinstance(args, dict) else {}


def _parameters(types: dict[str, str | None]) -> str:
    return ", ".join(
        identifier(name) + (f" {type_}" if type_ else "") for name, type_ in types.items()
    )


def _check_macro(function: Entry, node: MappingNode) -> None:
    """Checks that a function without types has only an expression. Raises SpecError."""
    if node.get("sql") is None:
        raise unsupported_error(
            f'the function "{function.name}" in Python has a parameter without a type',
            function.key.location,
            "add the types to args, or to the annotations of the code",
        )
    for entry in node.entries:
        if entry.name not in ("args", "sql"):
            raise unsupported_error(
                f'CREATE MACRO has no option "{entry.name}"',
                entry.key.location,
                "add the types of all parameters",
            )


def _body(function: Entry, options: dict[str, Any]) -> str:
    if (code := options.get("code")) is None:
        return f"RETURN {str(options.get('sql', '')).strip()}"
    code = str.__str__(code)
    tag = next(
        (mark for mark in ("$$", "$code$", "$body$") if mark not in f"{code}$"[: len(code)]), None
    )
    if tag is None or code.endswith("$"):
        raise unsupported_error(
            f'the code of the function "{function.name}" has the quotes of a SQL script',
            function.key.location,
            "write the code to a Python file, and its path to function_files",
        )
    return f"LANGUAGE PYTHON AS {tag}{code}{tag}"
