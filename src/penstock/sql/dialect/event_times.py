"""Event times and windows of the relations of a query.

They are columns of the rows, or columns that a query or a view below does not select. Those are
added to the rows by the name `_event_time`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from penstock.core.text import did_you_mean
from penstock.sql.dialect.lineage import is_aggregate
from penstock.sql.dialect.relation import CALENDAR, InputRelation, Output, Spec
from penstock.sql.text.clauses import Part, Query, Select, Source
from penstock.sql.text.edits import DialectError, Edit, Translation
from penstock.sql.text.query import read_query
from penstock.sql.text.quoting import quoted
from penstock.sql.text.sql import Call, Sql

HIDDEN = "_event_time"
"""The column of an event time that a query does not select."""


class EventTimes:
    """The event times of a query, and the edits that add them to rows.

    A subclass sets `outputs` of the relations of a select, from the innermost select outwards.
    """

    def __init__(self, sql: Sql, query: Query, relations: Mapping[str, InputRelation]) -> None:
        self.sql, self.query, self.relations = sql, query, relations
        self.edits: list[Edit] = []
        self.outputs: dict[Source, Output] = {}
        self._exposed: dict[Source | Query, bool] = {}
        self._grouped: dict[Select, tuple[str, Spec]] = {}
        self._ctes: dict[Source, Query] = {}
        self.in_place: dict[str, InputRelation] = {}
        """The views whose queries are read in place of the views, by name in lower case."""
        self.hidden: set[str] = set()
        """The views whose windows a join compares, and which do not select them."""

    def translation(self) -> Translation:
        """Returns the text after the edits."""
        return Translation.of(self.sql.text).edit(dict.fromkeys(self.edits))

    def _window_column(self, source: Source) -> tuple[str | None, Spec | None]:
        """Returns a column of windows of Spark, and the window.

        Sessions and windows of the calendar are structs without it.
        """
        for column, spec in self.outputs[source].windows.items():
            if spec is None or not (spec[0] == "session" or spec[0].startswith(CALENDAR)):
                return column, spec
        return None, None

    def _time(self, select: Select, call: Call | None = None) -> str:
        """Returns the event time of the rows that a select reads. Raises DialectError."""
        for source in select.sources:
            output = self.outputs[source]
            if output.time:
                return self._reference(select, source, output.time)
        for source in select.sources:
            column, _ = self._window_column(source)
            if column:
                return f"window_time({self._reference(select, source, column)})"
        for source in select.sources:
            if self.outputs[source].windows and self._expose_window(source):
                return f"window_time({self._reference(select, source, HIDDEN)})"
            if self._expose(source):
                self._leave_out(select)
                return self._reference(select, source, HIDDEN)
        names = [source.name for source in select.sources if source.name]
        start = self.sql[call.name].start if call else self.sql[select.part[0]].start
        end = self.sql[call.closing].end if call else self.sql[select.part[0]].end
        raise DialectError(
            "a window needs an event time" + (f', and "{names[0]}" has none' if names else ""),
            start, end, self._time_hint(names), "no-event-time",
        )  # fmt: skip

    def _leave_out(self, select: Select) -> None:
        """Leaves the event time that was added to an input out of the columns of `*`."""
        for item in select.items:
            last = item.part[1] - 1
            if item.is_star and not item.excluded:
                end = self.sql[last].end
                self.edits.append(Edit(end, end, f" EXCEPT ({HIDDEN})"))

    def _time_hint(self, names: list[str]) -> str:
        unknown = [name for name in names if name.lower() not in self.relations]
        if unknown and self.relations:
            similar = did_you_mean(unknown[0], [r.name for r in self.relations.values()])
            return similar or "read a table with a watermark"
        return "add WATERMARK FOR time AS time - INTERVAL '5 seconds' to the table"

    def _expose(self, source: Source) -> bool:
        """Adds the event time to the rows of a relation, as `_event_time`, if it has one."""
        if source not in self._exposed:
            self._exposed[source] = False
            query = source.query or self._ctes.get(source)
            relation = self.relations.get((source.name or "").lower())
            if query is not None:
                self._exposed[source] = self._expose_query(query)
            elif relation is not None:
                self._exposed[source] = self._expose_view(source, relation)
            if self._exposed[source]:
                self._name_first(source.columns)
        return self._exposed[source]

    def _expose_query(self, query: Query) -> bool:
        if query in self._exposed:
            return self._exposed[query]
        plain = all(
            not select.groups and not select.distinct and not is_aggregate(self.sql, select)
            for select in query.selects
        )
        if not plain or any(operator != "UNION ALL" for operator in query.operators):
            return False
        try:
            times = [self._time(select) for select in query.selects]
        except DialectError:
            return False
        for select, time in zip(query.selects, times, strict=True):
            start = self.sql[select.first_item].start
            self.edits.append(Edit(start, start, f"{time} AS {HIDDEN}, "))
        self._name_first(query.columns)
        self._exposed[query] = True
        return True

    def _name_first(self, columns: Part | None) -> None:
        """Adds `_event_time` at the start of the names after an alias."""
        if columns is not None:
            start = self.sql[columns[0]].start
            self.edits.append(Edit(start, start, f"{HIDDEN}, "))

    def _name_last(self, columns: Part | None) -> None:
        """Adds `_event_time` at the end of the names after an alias."""
        if columns is not None:
            end = self.sql[columns[1] - 1].end
            self.edits.append(Edit(end, end, f", {HIDDEN}"))

    def _expose_window(self, source: Source) -> Spec | None:
        """Adds the window of the groups of a relation to its rows, as `_event_time`, if it has one.

        Returns the window.
        """
        spec = self._expose_window_below(source)
        if spec is not None:
            self._name_last(source.columns)
        return spec

    def _expose_window_below(self, source: Source) -> Spec | None:
        query = source.query or self._ctes.get(source)
        relation = self.relations.get((source.name or "").lower())
        if query is not None:
            return self._expose_window_of(query)
        view = self._view(relation) if relation is not None else None
        spec = view._expose_window_of(view.query) if view is not None else None
        if relation is not None and view is not None and spec is not None:
            self._read_view(source, relation, view)
        return spec

    def _expose_window_of(self, query: Query) -> Spec | None:
        select = query.selects[0] if len(query.selects) == 1 else None
        if select is None:
            return None
        text, spec = self._grouped.get(select) or self._passed_window(select)
        if text is not None and not self._exposed.setdefault(query, False):
            self._exposed[query] = True
            end = self.sql[select.items[-1].part[1] - 1].end
            self.edits.append(Edit(end, end, f", {text} AS {HIDDEN}"))
            self._name_last(query.columns)
        return spec

    def _passed_window(self, select: Select) -> tuple[str | None, Spec | None]:
        """Returns the window of the rows of a select without groups, and its specification.

        The text is None if the rows have the column without an edit, by a wildcard.
        """
        is_plain = not select.groups and not select.distinct and not is_aggregate(self.sql, select)
        if not is_plain or len(select.sources) != 1:
            return None, None
        (source,) = select.sources
        column, spec = self._window_column(source)
        if column is not None:
            return self._reference(select, source, column), spec
        spec = self._expose_window(source)
        has_star = any(item.is_star for item in select.items)
        return (None if has_star or spec is None else HIDDEN), spec

    def _expose_view(self, source: Source, relation: InputRelation) -> bool:
        """Reads the query of a view with its event time, in place of the view."""
        view = self._view(relation)
        if view is None or not view._expose_query(view.query):
            return False
        self._read_view(source, relation, view)
        return True

    def _view(self, relation: InputRelation) -> Self | None:
        """Returns the event times of the query of a view; None without a query."""
        sql = Sql(relation.text or "")
        query = read_query(sql) if relation.text is not None else None
        try:
            return None if query is None else type(self)(sql, query, relation.relations)
        except DialectError:
            return None

    def _read_view(self, source: Source, relation: InputRelation, view: EventTimes) -> None:
        """Reads the query of a view in place of the view."""
        first, last = source.part
        alias = "" if source.alias else f" AS {quoted(source.name or relation.name)}"
        text = f"({view.translation().text}){alias}"
        self.in_place[relation.name.lower()] = relation
        self.edits.append(Edit(self.sql[first].start, self.sql[last - 1].end, text))

    def _reference(self, select: Select, source: Source, column: str) -> str:
        owner = source.alias or source.name
        if len(select.sources) == 1 or owner is None:
            return quoted(column)
        return f"{quoted(owner)}.{quoted(column)}"
