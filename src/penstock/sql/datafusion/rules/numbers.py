"""Functions of numbers without a counterpart in Spark: `gcd(a, b)`, `trunc(a)`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.calls import rewrite_call, rewrite_calls
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

_STEPS = 92
"""The most steps of Euclid's algorithm for two numbers of 64 bits."""
_PAIR = "named_struct('a', abs(CAST({0} AS BIGINT)), 'b', abs(CAST({1} AS BIGINT)))"
_STEP = "if(_pair.b = 0, _pair, named_struct('a', _pair.b, 'b', _pair.a % _pair.b))"
_GCD = f"aggregate(array_repeat(0, {_STEPS}), {_PAIR}, (_pair, _step) -> {_STEP}, _pair -> _pair.a)"
_TEMPLATES = {
    ("gcd", 2): _GCD,
    ("lcm", 2): f"if({{0}} = 0 OR {{1}} = 0, 0, abs({{0}} DIV {_GCD} * {{1}}))",
    ("iszero", 1): "({0} = 0)",
    ("trunc", 1): "(sign({0}) * floor(abs({0})))",
}


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields expressions of Spark. `trunc(date, unit)` remains."""
    yield from rewrite_calls(sql, _TEMPLATES)
    for call in sql.calls("trunc"):
        if len(call.arguments) == 2 and sql[call.arguments[1][1] - 1].kind == "number":
            power = "pow(10, {1})"
            yield rewrite_call(sql, call, f"(sign({{0}}) * floor(abs({{0}}) * {power}) / {power})")
