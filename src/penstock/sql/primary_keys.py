"""The primary key of the rows of a query: the columns that are proved to hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.core.names import quote_name
from penstock.sql.facts import Facts, parse_facts
from penstock.sql.group_keys import group_key
from penstock.sql.keyed_rows import KeyedRows
from penstock.sql.parsing import conjuncts
from penstock.sql.row_numbers import is_first, numbered_key
from penstock.sql.selected import Selected, read_selected

_TESTED = ("SEMI", "ANTI")
_RELATION = "penstock_rows"
_CONSTANT = KeyedRows(is_stream=False)
_MOVING_HINTS = ("repartition", "coalesce", "rebalance")


def keyed_rows(facts: Facts, relations: Mapping[str, KeyedRows]) -> KeyedRows:
    """Returns the rows of a query of relations, by name."""
    known = {name.lower(): rows for name, rows in relations.items()}
    if facts.tree is None:
        origin = None if all(rows.origin is None for rows in known.values()) else ()
        return KeyedRows(origin=origin)
    return _query_rows(facts, facts.tree, known)


def computed_rows(expressions: Sequence[str], rows: KeyedRows) -> KeyedRows:
    """Returns the rows of expressions over the columns of a relation, as in `SELECT`."""
    facts = parse_facts(f"SELECT {', '.join(expressions)} FROM {_RELATION}")
    return keyed_rows(facts, {_RELATION: rows})


def aliased(columns: Mapping[str, str]) -> list[str]:
    """Returns expressions with the names of their columns."""
    return [f"{text} AS {quote_name(name)}" for name, text in columns.items()]


def _query_rows(facts: Facts, query: exp.Expr, known: Mapping[str, KeyedRows]) -> KeyedRows:
    with_ = query.args.get("with_") or query.args.get("with")
    for cte in with_.expressions if with_ is not None else ():
        rows = _renamed(_query_rows(facts, cte.this, known), cte.args.get("alias"))
        known = {**known, cte.alias.lower(): rows}
    if isinstance(query, exp.Subquery):
        return _query_rows(facts, query.this, known)
    if isinstance(query, exp.SetOperation):
        return _merged_rows(facts, query, known)
    return _selected_rows(facts, query, known) if isinstance(query, exp.Select) else _CONSTANT


def _merged_rows(
    facts: Facts, query: exp.SetOperation, known: Mapping[str, KeyedRows]
) -> KeyedRows:
    """Returns the rows of UNION and the like, which are unique if they are distinct."""
    sides = [_query_rows(facts, side, known) for side in (query.left, query.right) if side]
    columns = sides[0].columns if sides else None
    if query.args.get("distinct") and columns is not None:
        return KeyedRows.by(_unique(columns), columns)
    return KeyedRows(
        columns,
        origin=None if all(side.origin is None for side in sides) else (),
        is_stream=any(side.is_stream for side in sides),
        keeps_changes=all(side.keeps_changes for side in sides),
    )


def _selected_rows(facts: Facts, select: exp.Select, known: Mapping[str, KeyedRows]) -> KeyedRows:
    from_ = select.args.get("from_") or select.args.get("from")
    joins = select.args.get("joins") or ()
    sources = [each.this for each in (from_, *joins) if each is not None]
    rows = [_relation_rows(facts, source, known) for source in sources]
    names = [source.alias_or_name.lower() for source in sources]
    selected = read_selected(select, names, [each.columns for each in rows])
    streams = [index for index, each in enumerate(rows) if each.is_stream]
    types = selected.joined_types([each.types for each in rows])
    if select.args.get("distinct"):
        key = _unique(selected.columns or ())
        return KeyedRows(selected.columns, key, key, types, is_stream=bool(streams))
    if any(select is each for each in facts.aggregating_queries):
        key = () if selected.has_generators else group_key(select, selected)
        return KeyedRows(selected.columns, key, key, types, is_stream=bool(streams))
    numbered = numbered_key(select, selected) or _kept_number(select, selected, rows)
    if len(streams) != 1 or from_ is None:
        origin = None if all(each.origin is None for each in rows) else ()
        merged = KeyedRows(selected.columns, (), origin, types, is_stream=bool(streams))
        return replace(merged, numbered=numbered)
    return replace(_kept_rows(select, selected, rows, streams[0], names), numbered=numbered)


def _kept_number(
    select: exp.Select, selected: Selected, rows: Sequence[KeyedRows]
) -> tuple[str, ...]:
    """Returns the columns with the row number of a subquery, without a number that is 1."""
    if len(rows) != 1 or not rows[0].numbered:
        return ()
    if selected.has_generators or select.args.get("laterals"):
        return ()
    key = rows[0].numbered
    key = key[:-1] if is_first(select, selected.names[0], key[-1]) else key
    return selected.find(0, key, {})


def _kept_rows(
    select: exp.Select,
    selected: Selected,
    rows: Sequence[KeyedRows],
    stream: int,
    names: Sequence[str],
) -> KeyedRows:
    """Returns the rows of a query that computes each row of one stream by itself."""
    source, joins = rows[stream], list(select.args.get("joins") or ())
    is_single = stream == 0 and not (select.args.get("laterals") or selected.has_generators)
    kept = is_single and all((j.side or "").upper() == "LEFT" and not _tests(j) for j in joins)
    lost = replace(
        source.lost(),
        columns=selected.columns,
        types=selected.types(stream, source.types),
        keeps_changes=source.keeps_changes and kept,
    )
    if source.origin is None or _moves_rows(select) or not _preserves(joins, stream):
        return lost
    is_single = is_single and all(
        _matches_once(join, rows[index], names[index]) for index, join in enumerate(joins, 1)
    )
    key = selected.find(stream, source.key, source.types) if is_single else ()
    return replace(lost, key=key, origin=selected.find(stream, source.origin, source.types))


def _relation_rows(facts: Facts, source: exp.Expr, known: Mapping[str, KeyedRows]) -> KeyedRows:
    if isinstance(source, exp.Table):
        rows = known.get(source.name.lower(), _CONSTANT)
    elif isinstance(source, exp.Subquery):
        rows = _query_rows(facts, source, known)
    else:
        return _CONSTANT
    if source.args.get("pivots") or source.args.get("sample"):
        rows = replace(rows.lost(), keeps_changes=False)
    return _renamed(rows, source.args.get("alias"))


def _renamed(rows: KeyedRows, alias: exp.Expr | None) -> KeyedRows:
    """Returns rows whose columns an alias names by position."""
    names = [column.name for column in getattr(alias, "columns", ())]
    if not names:
        return rows
    if rows.columns is None or len(rows.columns) != len(names):
        return replace(rows.lost(), columns=tuple(names))
    lower = [column.lower() for column in rows.columns]
    once = {
        old: new for old, new in zip(lower, names, strict=True) if old and lower.count(old) == 1
    }
    known = rows.without(column for column in {*lower, *rows.types} if column not in once)
    return replace(known.rename(once), columns=tuple(names))


def _unique(columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the columns as a key, none if a column has no name, or that of another one."""
    lower = [column.lower() for column in columns]
    return tuple(columns) if all(lower) and len({*lower}) == len(lower) else ()


def _preserves(joins: Sequence[exp.Join], stream: int) -> bool:
    """Returns whether joins keep the values of the columns of a relation."""
    return not any(
        join.args.get("method")
        or (join.side or "").upper() not in ("", "LEFT")
        or (index == stream and join.side)
        for index, join in enumerate(joins, 1)
    )


def _tests(join: exp.Join) -> bool:
    """Returns whether a join is a condition: a semi or an anti join."""
    return (join.kind or "").upper() in _TESTED


def _matches_once(join: exp.Join, table: KeyedRows, name: str) -> bool:
    """Returns whether a row has at most one match: of a semi join, or by the key of a table."""
    if _tests(join):
        return True
    if not table.key or isinstance(join.this, exp.Lateral):
        return False
    using = {column.name.lower() for column in join.args.get("using") or ()}
    condition = join.args.get("on")
    compared = {
        side.name.lower()
        for equality in conjuncts(condition)
        if isinstance(equality, exp.EQ)
        for side, other in ((equality.left, equality.right), (equality.right, equality.left))
        if isinstance(side, exp.Column) and side.table.lower() == name
        if not any(column.table.lower() in (name, "") for column in other.find_all(exp.Column))
    }
    return {column.lower() for column in table.key} <= using | compared


def _moves_rows(select: exp.Select) -> bool:
    """Returns whether a query moves rows to other partitions, without their order."""
    hint = select.args.get("hint")
    hints = [each.name.lower() for each in hint.expressions] if hint is not None else []
    return any(select.args.get(name) for name in ("distribute", "cluster", "sort")) or any(
        name.startswith(_MOVING_HINTS) for name in hints
    )
