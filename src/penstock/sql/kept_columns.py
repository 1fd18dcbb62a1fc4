"""Columns of the input that the output of a query has under the same names, row by row."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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


def group_columns(facts: Facts) -> tuple[str, ...]:
    """Returns the columns of the output that hold all groups of a query, or of the query below.

    Each row has values of its own in these columns. None without groups.
    """
    return _group_columns(facts, facts.tree)


def _group_columns(facts: Facts, query: exp.Expr | None) -> tuple[str, ...]:
    if not isinstance(query, exp.Select):
        return ()
    outputs, group = query.expressions, query.args.get("group")
    if query.args.get("distinct") and all(output.alias_or_name for output in outputs):
        return tuple(output.alias_or_name for output in outputs)
    if any(query is each for each in facts.aggregating_queries):
        if group is None or any(v for name, v in group.args.items() if name != "expressions"):
            return ()
        names = [_output_name(key, outputs) for key in group.expressions]
    else:
        names = [_kept_name(name, query) for name in _groups_below(facts, query)]
    return tuple(names) if all(names) else ()


def _groups_below(facts: Facts, query: exp.Select) -> tuple[str, ...]:
    """Returns the group columns of the only relation of a query that returns each row once."""
    from_ = query.args.get("from_") or query.args.get("from")
    several = [*(query.args.get("joins") or ()), *(query.args.get("laterals") or ())]
    several += [output for output in query.expressions if output.find(*_SEVERAL_ROWS)]
    if from_ is None or several or from_.this.alias_column_names:
        return ()
    below = facts.ctes.get(from_.this.name.lower())
    if isinstance(from_.this, exp.Subquery):
        below = from_.this.this
    return _group_columns(facts, below)


def _kept_name(name: str, query: exp.Select) -> str:
    """Returns the name of the output with a column of the relation below; empty if none has it."""
    for output in query.expressions:
        if output.is_star:
            changed = [*(output.args.get("except_") or ()), *(output.args.get("replace") or ())]
            if not any(each.alias_or_name.lower() == name.lower() for each in changed):
                return name
        column = output.unalias()
        if isinstance(column, exp.Column) and column.name.lower() == name.lower():
            return str(output.alias_or_name)
    return ""


def _output_name(key: exp.Expr, outputs: Sequence[exp.Expr]) -> str:
    """Returns the column of the output with the value of a group: by position, name or value."""
    if isinstance(key, exp.Literal) and key.is_int:
        return (
            str(outputs[int(key.name) - 1].alias_or_name) if int(key.name) <= len(outputs) else ""
        )
    for output in outputs:
        if output.unalias() == key or _is_alias(key, output):
            return str(output.alias_or_name)
    return ""


def _is_alias(key: exp.Expr, output: exp.Expr) -> bool:
    """Returns whether a group is an output by its alias, not a column of the input."""
    if not isinstance(key, exp.Column) or key.table or key.name != output.alias:
        return False
    columns = output.find_all(exp.Column)
    return output.find(exp.AggFunc) is None and all(column.name != key.name for column in columns)


def _excludes(query: exp.Select, names: Collection[str]) -> bool:
    """Returns whether a wildcard leaves out one of the columns."""
    stars = query.find_all(exp.Star)
    excluded = (column for star in stars for column in star.args.get("except_") or ())
    return any(column.name in names for column in excluded)
