"""Expressions of functions in SQL, checked without Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from penstock.core.text import did_you_mean, line_and_column
from penstock.plan.functions.python_code import CodeError
from penstock.sql.parsing import parse_sql


def check_expression(text: str, parameters: Sequence[str]) -> None:
    """Checks that an expression reads its parameters and nothing else. Raises CodeError.

    Spark reports syntax errors.
    """
    tree = parse_sql(text)
    if tree is None:
        return
    query = tree.find(exp.Query)
    if query is not None:
        raise CodeError(
            "a function in SQL cannot contain a query",
            *_place(text, "select"),
            code="unsupported-sql",
            hint="write a view, and join it",
        )
    known = {name.lower() for name in parameters}
    known |= {
        variable.name.lower()
        for function in tree.find_all(exp.Lambda)
        for variable in function.expressions
    }
    for column in tree.find_all(exp.Column):
        name = column.parts[0].name
        if name.lower() not in known:
            raise CodeError(
                f'there is no parameter "{name}"',
                *_place(text, name),
                code="unknown-column",
                hint=did_you_mean(name, parameters),
            )


def _place(text: str, name: str) -> tuple[int, int]:
    match = re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)
    return line_and_column(text, match.start() if match else 0)
