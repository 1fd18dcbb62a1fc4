"""Columns of the input that the output of a query has under the same names, row by row."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from penstock.sql.facts import Facts

_SEVERAL_ROWS = (exp.Join, exp.Lateral, exp.UDTF, exp.Explode, exp.Inline, exp.Unnest)
"""The expressions that may return a row of the input several times."""


def keeps_columns(facts: Facts, names: Collection[str]) -> bool:
    """Returns whether a query of one table returns each row at most once, with these columns."""
    query = facts.tree
    if not isinstance(query, exp.Select) or query.find(exp.CTE, *_SEVERAL_ROWS) is not None:
        return False
    from_ = query.args.get("from_") or query.args.get("from")
    table = from_.this if from_ is not None else None
    if not isinstance(table, exp.Table) or table.alias_column_names:
        return False
    if any(isinstance(output, exp.Star) for output in query.expressions):
        return not _excludes(query, names)
    return set(names) <= {
        output.alias_or_name
        for output in query.expressions
        if isinstance(column := output.unalias(), exp.Column)
        and column.name == output.alias_or_name
    }


def _excludes(query: exp.Select, names: Collection[str]) -> bool:
    """Returns whether a wildcard leaves out one of the columns."""
    stars = query.find_all(exp.Star)
    excluded = (column for star in stars for column in star.args.get("except_") or ())
    return any(column.name in names for column in excluded)
