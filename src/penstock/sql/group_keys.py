"""Groups as a primary key: the columns of a query that hold all expressions of GROUP BY."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.sql.selected import Selected


def group_key(select: exp.Select, selected: Selected) -> tuple[str, ...]:
    """Returns the columns of the output that hold all groups; none if a group is missing.

    Each row has values of its own in these columns.
    """
    group = select.args.get("group")
    if group is None or any(v for name, v in group.args.items() if name != "expressions"):
        return ()
    groups, outputs = group.expressions, select.expressions
    names = [_output_name(each, groups, outputs, selected) for each in groups]
    if not all(names):
        return ()
    unique = tuple(dict.fromkeys(names))
    written = [output.alias_or_name.lower() for output in outputs]
    return unique if all(written.count(name.lower()) == 1 for name in unique) else ()


def _output_name(
    group: exp.Expr, groups: Sequence[exp.Expr], outputs: Sequence[exp.Expr], selected: Selected
) -> str:
    """Returns the column of the output with the value of a group: by position, name or value."""
    if isinstance(group, exp.Literal) and group.is_int:
        number = int(group.name)
        if number > len(outputs) or any(output.is_star for output in outputs[:number]):
            return ""
        return str(outputs[number - 1].alias_or_name)
    for output in outputs:
        if output.alias_or_name and _equal(output.unalias(), group, selected):
            return str(output.alias_or_name)
    for output in outputs:
        if _is_alias(group, output, groups, selected):
            return str(output.alias_or_name)
    return ""


def _is_alias(
    group: exp.Expr, output: exp.Expr, groups: Sequence[exp.Expr], selected: Selected
) -> bool:
    """Returns whether a group is an output by its alias: Spark prefers a column of the input.

    An output that the other groups do not determine is valid as a group only.
    """
    if not isinstance(group, exp.Column) or group.table:
        return False
    if not isinstance(output, exp.Alias) or group.name.lower() != output.alias.lower():
        return False
    if output.find(exp.AggFunc) is not None:
        return False
    is_column = selected.is_column(group.name)
    if is_column is not None:
        return not is_column
    others = {column.name.lower() for each in groups for column in each.find_all(exp.Column)}
    columns = {column.name.lower() for column in output.find_all(exp.Column)}
    return not columns <= others


def _equal(value: exp.Expr, group: exp.Expr, selected: Selected) -> bool:
    """Returns whether two expressions are the same, with or without the name of the relation."""
    return _plain(value, selected) == _plain(group, selected)


def _plain(value: exp.Expr, selected: Selected) -> exp.Expr:
    """Returns an expression with names in lower case, without the name of the only relation."""

    def plain(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.is_star:
            return node
        alone = len(selected.names) == 1 and node.table.lower() == selected.names[0]
        return exp.column(node.name.lower(), table=None if alone else node.table.lower() or None)

    return value.copy().transform(plain)
