"""Calls of user-defined functions in expressions of Spark's plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.engine.catalyst.fallible_expressions import is_function_call
from penstock.engine.catalyst.java_trees import children_of, contains_pattern
from penstock.engine.catalyst.spark_plan import equal_nodes, map_children


def innermost_calls(values: Sequence[Any]) -> list[Any]:
    """Returns the calls of user-defined functions whose arguments call no such function."""
    found: list[Any] = []
    for value in values:
        if contains_pattern(value, "PYTHON_UDF", only_streams=False):
            _add_calls(value, found)
    return found


def replace_call(expression: Any, call: Any, result: Any) -> Any:
    """Returns an expression with `result` in place of `call`."""
    if equal_nodes(expression, call):
        return result
    return map_children(expression, lambda child: replace_call(child, call, result))


def _add_calls(expression: Any, found: list[Any]) -> bool:
    """Adds the innermost calls in an expression. Returns whether there is one."""
    inner = [_add_calls(child, found) for child in children_of(expression)]
    if any(inner):
        return True
    if not is_function_call(expression):
        return False
    if not any(equal_nodes(expression, call) for call in found):
        found.append(expression)
    return True
