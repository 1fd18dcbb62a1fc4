"""`SELECT *` of rows that have an event time in addition to their columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from penstock.sql.dialect.lineage import is_aggregate, starred_sources
from penstock.sql.text.clauses import Item, Query, Select, Source
from penstock.sql.text.edits import Edit
from penstock.sql.text.query import read_query
from penstock.sql.text.quoting import quoted
from penstock.sql.text.sql import Sql, read_sql

EVENT_TIME = "_timestamp"
"""The column of an event time that a table does not declare."""


class HiddenTimes:
    """Finds the queries whose `*` has the hidden event time.

    `tables` are the sources whose rows have it. `queries` are the queries of views. Names are in
    lower case.
    """

    def __init__(self, tables: Collection[str], queries: Mapping[str, str]) -> None:
        self._known = dict.fromkeys(tables, True)
        self._queries = queries

    def has_time(self, query: str) -> bool:
        """Returns whether the rows of a query have the hidden event time."""
        sql = read_sql(query)
        clauses = read_query(sql) if sql is not None else None
        return sql is not None and clauses is not None and self._query_has_time(sql, clauses, {})

    def without_time(self, query: str) -> Iterator[Edit]:
        """Yields the edits after which `*` selects the columns without the hidden event time."""
        sql = read_sql(query)
        clauses = read_query(sql) if sql is not None else None
        if sql is None or clauses is None:
            return
        for select in clauses.selects:
            for item in self._stars(sql, select, clauses.ctes):
                last = sql[item.part[1] - 1]
                if (stars := self._separate_stars(sql, item, select, clauses.ctes)) is not None:
                    yield Edit(last.start, last.end, stars)
                elif item.excluded:
                    columns = "" if last.is_sign(")") else f"({sql.text[last.start : last.end]}"
                    yield Edit(last.start, last.end, f"{columns}, {EVENT_TIME})")
                else:
                    yield Edit(last.end, last.end, f" EXCEPT ({EVENT_TIME})")

    def _separate_stars(
        self, sql: Sql, item: Item, select: Select, ctes: Mapping[str, Query]
    ) -> str | None:
        """Returns `a.*, b.*` in place of `*` of a join in which two relations have the time."""
        names = [source.alias or source.name or "" for source in select.sources]
        timed = [source for source in select.sources if self._source_has_time(sql, source, ctes)]
        is_merged = any(
            source.using or "NATURAL" in (source.join or "") for source in select.sources
        )
        if len(timed) < 2 or item.part[1] - item.part[0] > 1 or is_merged or "" in names:
            return None
        return ", ".join(
            f"{quoted(name)}.*" + (f" EXCEPT ({EVENT_TIME})" if source in timed else "")
            for name, source in zip(names, select.sources, strict=True)
        )

    def _query_has_time(self, sql: Sql, query: Query, ctes: Mapping[str, Query]) -> bool:
        known = {**ctes, **query.ctes}
        first = query.selects[:1]
        return any(True for select in first for _ in self._stars(sql, select, known))

    def _stars(self, sql: Sql, select: Select, ctes: Mapping[str, Query]) -> Iterator[Item]:
        """Yields the items `*` and `name.*` that have the hidden event time."""
        if select.groups or is_aggregate(sql, select):
            return
        for item in select.items:
            if item.is_star and EVENT_TIME not in item.excluded and any(
                self._source_has_time(sql, source, ctes)
                for source in starred_sources(sql, item, select.sources)
            ):  # fmt: skip
                yield item

    def _source_has_time(self, sql: Sql, source: Source, ctes: Mapping[str, Query]) -> bool:
        if source.query is not None:
            return self._query_has_time(sql, source.query, ctes)
        return self._table_has_time(sql, source.name or "", ctes)

    def _table_has_time(self, sql: Sql, name: str, ctes: Mapping[str, Query]) -> bool:
        name = name.lower()
        if name in ctes:
            outer = {key: query for key, query in ctes.items() if key != name}
            return self._query_has_time(sql, ctes[name], outer)
        if name not in self._known:
            self._known[name] = False
            self._known[name] = name in self._queries and self.has_time(self._queries[name])
        return self._known[name]
