"""The options of a decorator, such as `@udf(timeout="5s")`, read without running the file."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from penstock.core.errors import PlanError
from penstock.core.location import Location
from penstock.core.text import did_you_mean
from penstock.core.units import positive_seconds
from penstock.spec.dialects.python_functions import OPPOSITE_OPTIONS, SPELLINGS

_TYPES: dict[str, type | tuple[type, ...]] = {
    "name": str, "returns": str, "vectorized": bool, "deterministic": bool, "concurrency": int,
    "timeout": (int, float, str), "dependencies": (list, tuple), "ordered": bool,
}  # fmt: skip
_TYPES |= {spelling: _TYPES[name] for spelling, name in SPELLINGS.items()}
ASYNC_OPTIONS = ("concurrency", "ordered")
"""Options of functions with `async def`."""


def read_decorator_options(call: ast.Call, locate: Callable[[ast.AST], Location]) -> dict[str, Any]:
    """Returns the options by their names in Penstock. Raises PlanError at the place of an error."""
    if call.args:
        problem = PlanError("expected options by name", code="invalid-option")
        raise _at(problem, locate(call.args[0]))
    options: dict[str, Any] = {}
    written: dict[str, str] = {}
    for keyword in call.keywords:
        try:
            given, value = _read(keyword)
            name = SPELLINGS.get(given, given)
            if name in options:
                raise PlanError(
                    f'expected only one of "{written[name]}" and "{given}"',
                    code="duplicate-key", hint="remove one of the options",
                )  # fmt: skip
        except PlanError as error:
            raise _at(error, locate(keyword)) from None
        options[name], written[name] = value, given
    return options


def check_async_options(options: dict[str, Any], *, is_async: bool) -> None:
    """Checks that only an asynchronous function has options of such functions. Raises PlanError."""
    for name in ASYNC_OPTIONS:
        if name in options and not is_async:
            raise PlanError(
                f"{name} is an option of async functions",
                code="unused-option", hint="write async def, or remove the option",
            )  # fmt: skip


def _read(keyword: ast.keyword) -> tuple[str, Any]:
    """Returns the name and the value of an option as in Penstock."""
    name = keyword.arg or "**"
    if name not in _TYPES:
        raise PlanError(
            f'unknown option "{name}"', code="unknown-option", hint=did_you_mean(name, _TYPES)
        )
    try:
        value = ast.literal_eval(keyword.value)
    except ValueError:
        raise PlanError(
            f'the option "{name}" is not a literal',
            code="invalid-option",
            hint="write the value itself: the file is not run to read it",
        ) from None
    types = _TYPES[name]
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise PlanError(f'the option "{name}" has the wrong type: {value!r}', code="invalid-option")
    if types is int and isinstance(value, int) and value < 1:
        raise PlanError(
            f'the option "{name}" is {value}, expected at least 1', code="invalid-option"
        )
    if name == "timeout":
        try:
            text = value if isinstance(value, str) else f"{value}s"
            return name, float(positive_seconds(text))
        except ValueError as error:
            raise PlanError(f"timeout: {error}", code="invalid-option") from None
    return name, (not value if name in OPPOSITE_OPTIONS else value)


def _at(error: PlanError, where: Location) -> PlanError:
    error.where = where
    return error
