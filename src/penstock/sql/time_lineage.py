"""Lineage of event times: the columns and expressions by which a watermark completes rows.

Spark completes rows by an event time, by a window of event times, and by the start and end of a
window. Another expression over them, as `to_date(at)` or `max(at)`, is a value like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Literal

from sqlglot import exp

from penstock.sql.facts import Facts

Kind = Literal["time", "window", "bound", "any"]
"""The kind of a value; `any` is that of a column of an input, which may be each of them."""
Kinds = dict[str, Kind | None]
"""The kinds of columns by name in lower case; None for a column that is no time."""
Columns = Mapping[str, Sequence[str | None]]
"""The columns of relations in order, by the name of the relation in lower case."""

_WINDOWS = frozenset({"window", "session_window"})
_OWN_WINDOWS = frozenset({"tumble", "hop", "session"})
"""Calls that are not translated to windows of Spark yet."""
_TIMESTAMPS = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"})
_BOUNDS = frozenset({"start", "end"})


class TimeLineage:
    """The kinds of the columns and expressions of a query.

    `times` are the columns of the inputs with event times or windows. A column that may be one of
    several relations is a time if it is in one of them.
    """

    def __init__(self, facts: Facts, times: Set[str], columns: Columns) -> None:
        self._facts = facts
        self._inputs: Kinds = {name.lower(): "any" for name in times}
        self._columns = columns
        self._sources: dict[int, dict[str, Kinds]] = {}
        self._outputs: dict[int, Kinds] = {}
        self._visited: set[int] = set()

    def output(self, query: exp.Expr) -> Kinds:
        """Returns the kinds of the columns of a query, those with a known name."""
        if id(query) not in self._outputs:
            self._outputs[id(query)] = {}
            self._outputs[id(query)] = self._output(query)
        return self._outputs[id(query)]

    def kind(self, value: exp.Expr | None, select: exp.Expr) -> Kind | None:
        """Returns the kind of an expression in a query; None for a value that is no time."""
        if isinstance(value, exp.Paren | exp.Alias):
            return self.kind(value.this, select)
        if isinstance(value, exp.Cast):
            kind = self.kind(value.this, select)
            is_timestamp = value.to.this.value in _TIMESTAMPS
            return "time" if kind in ("time", "any") and is_timestamp else None
        if isinstance(value, exp.Column):
            return self._column_kind([part.name.lower() for part in value.parts], select)
        if isinstance(value, exp.Identifier):
            return self._column_kind([value.name.lower()], select)
        if isinstance(value, exp.Dot):
            return _field_kind(self.kind(value.this, select), value.expression.name.lower())
        if isinstance(value, exp.Anonymous):
            return self._call_kind(value, select)
        if isinstance(value, exp.Struct):
            return self._struct_kind(value, select)
        return None

    def names(self) -> frozenset[str]:
        """Returns the names of all columns of the query that are times, without those of values.

        A name of the output that is no time is left out.
        """
        tree = self._facts.tree
        assert tree is not None
        found = {name for name, kind in self._inputs.items() if kind}
        for query in tree.find_all(exp.Query):
            found |= {name for name, kind in self.output(query).items() if kind}
        for call in tree.find_all(exp.Anonymous):
            if call.name.lower() in _WINDOWS | _OWN_WINDOWS:
                found.add("session_window" if call.name.lower() == "session_window" else "window")
        return frozenset(found - {n for n, kind in self.output(tree).items() if kind is None})

    def _output(self, query: exp.Expr) -> Kinds:
        if isinstance(query, exp.SetOperation):
            return self.output(query.left)
        if isinstance(query, exp.Subquery):
            return self.output(query.this)
        if not isinstance(query, exp.Select):
            return {}
        found: Kinds = {}
        for item in query.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                found |= self._star(star, item.table if item is not star else "", query)
            elif name := _name_of(item):
                found[name] = self.kind(item, query)
        return found

    def _star(self, star: exp.Star, owner: str, query: exp.Select) -> Kinds:
        sources = self._sources_of(query)
        chosen = [sources.get(owner.lower(), {})] if owner else list(sources.values())
        excluded = {column.name.lower() for column in star.args.get("except_") or ()}
        found: Kinds = {}
        for kinds in chosen:
            found |= {n: k for n, k in kinds.items() if n not in excluded and not found.get(n)}
        return found

    def _column_kind(self, parts: Sequence[str], select: exp.Expr) -> Kind | None:
        sources = self._sources_of(select)
        owner = next(
            (parts[:n][-1] for n in (1, 2) if n < len(parts) and parts[n - 1] in sources), None
        )
        if owner is not None:
            name, *fields = parts[parts.index(owner) + 1 :]
            found, kind = True, sources[owner].get(name)
        else:
            name, *fields = parts
            found, kind = self._unqualified_kind(name, select, sources)
        parent = select.parent_select
        if not found and parent is not None:
            return self._column_kind(parts, parent)
        for field in fields:
            kind = _field_kind(kind, field)
        return kind

    def _unqualified_kind(
        self, name: str, select: exp.Expr, sources: Mapping[str, Kinds]
    ) -> tuple[bool, Kind | None]:
        """Returns whether a name is known in a query, and its kind."""
        known = [kinds[name] for kinds in sources.values() if name in kinds]
        if known:
            return True, next((kind for kind in known if kind), None)
        if name in _WINDOWS:
            calls = [call for call in select.find_all(exp.Anonymous) if call.name.lower() == name]
            if calls:
                kinds = [self._computed_kind(call, select) for call in calls]
                return True, next((kind for kind in kinds if kind), None)
        for item in select.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() == name:
                return True, self._computed_kind(item.this, select)
        return False, None

    def _computed_kind(self, value: exp.Expr, select: exp.Expr) -> Kind | None:
        """Returns the kind of a column that the query itself computes, which may name itself."""
        if id(value) in self._visited:
            return None
        self._visited.add(id(value))
        try:
            return self.kind(value, select)
        finally:
            self._visited.discard(id(value))

    def _call_kind(self, call: exp.Anonymous, select: exp.Expr) -> Kind | None:
        name = call.name.lower()
        if name in _OWN_WINDOWS or (name in _WINDOWS and not self._inputs):
            # Windows of inputs without any event time are reported by other checks.
            return "window"
        argument = call.expressions[0] if call.expressions else None
        kind = self.kind(argument, select)
        if name in _WINDOWS:
            return "window" if kind in ("time", "window", "any") else None
        if name == "window_time":
            return "time" if kind in ("window", "any") else None
        return None

    def _struct_kind(self, struct: exp.Struct, select: exp.Expr) -> Kind | None:
        """Returns the kind of a struct: of a window of the calendar, or of bounds of a session."""
        kinds = {self.kind(part, select) for part in struct.find_all(exp.Column, exp.Dot)}
        if "bound" in kinds:
            return "any"
        return "window" if calendar_time(struct) is not None and kinds <= {"time", "any"} else None

    def _sources_of(self, select: exp.Expr) -> dict[str, Kinds]:
        """Returns the columns of the relations that a query reads, by their names or aliases."""
        if id(select) not in self._sources:
            self._sources[id(select)] = {}
            found: dict[str, Kinds] = {}
            for number, relation in enumerate(_relations(select)):
                name = str(relation.alias_or_name).lower() or str(number)
                found[name] = self._relation_kinds(relation)
            self._sources[id(select)] = found
        return self._sources[id(select)]

    def _relation_kinds(self, relation: exp.Expr) -> Kinds:
        alias = relation.args.get("alias")
        new = [column.name.lower() for column in alias.args.get("columns") or ()] if alias else []
        if isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier):
            name = relation.name.lower()
            query = self._facts.ctes.get(name)
            kinds = dict(self._inputs) if query is None else self._cte_kinds(query)
            old = self._columns.get(name) if query is None else _names(query)
            if query is None and old is not None and None not in old:
                kinds = {name: kind for name, kind in kinds.items() if name in old}
        elif isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Query):
            kinds, old = self.output(relation.this), _names(relation.this)
        else:
            tables = relation.find_all(exp.Table)
            return {n: k for table in tables if table is not relation
                    for n, k in self._relation_kinds(table).items()}  # fmt: skip
        if not new:
            return kinds
        if old is None or len(old) != len(new):
            return dict.fromkeys(new, "any")
        return {name: kinds.get(before or "") for name, before in zip(new, old, strict=True)}

    def _cte_kinds(self, query: exp.Expr) -> Kinds:
        cte, kinds = query.parent, self.output(query)
        alias = cte.args.get("alias") if cte is not None else None
        new = [column.name.lower() for column in alias.args.get("columns") or ()] if alias else []
        if not new:
            return kinds
        old = _names(query)
        if old is None or len(old) != len(new):
            return dict.fromkeys(new, "any")
        return {name: kinds.get(before) for name, before in zip(new, old, strict=True)}


def calendar_time(struct: exp.Struct) -> exp.Expr | None:
    """Returns the time whose calendar window a struct is; None for another struct."""
    fields = {field.name.lower(): field.expression for field in struct.expressions}
    if fields.keys() != _BOUNDS or not all(isinstance(each, exp.Expr) for each in fields.values()):
        return None
    truncated = [bound.find(exp.TimestampTrunc) for bound in fields.values()]
    return truncated[0].this if truncated[0] is not None and all(truncated) else None


def _relations(select: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the relations that a query reads, without table functions of LATERAL VIEW."""
    source = select.args.get("from_") or select.args.get("from")
    if source is not None:
        yield source.this
    for join in select.args.get("joins") or ():
        yield join.this


def _names(query: exp.Expr) -> list[str] | None:
    """Returns the names of the columns of a query in order; None if they are not known."""
    if isinstance(query, exp.Query) and not query.is_star:
        return [name.lower() for name in query.named_selects]
    return None


def _name_of(item: exp.Expr) -> str:
    """Returns the name of a selected column in lower case; an empty text if it is not known."""
    name = str(item.alias_or_name).lower()
    if isinstance(item, exp.Anonymous):
        return name if name in _WINDOWS else ""
    return name if isinstance(item, exp.Alias | exp.Column | exp.Dot) else ""


def _field_kind(kind: Kind | None, field: str) -> Kind | None:
    """Returns the kind of a field of a value."""
    return "bound" if kind in ("window", "any") and field in _BOUNDS else None
