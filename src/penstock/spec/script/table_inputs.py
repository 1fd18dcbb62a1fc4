"""The queries of a script that write its tables, as inputs of sinks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from penstock.spec.script.assignment import assignment, selected_table
from penstock.spec.script.dialect import Dialect
from penstock.spec.script.event_times import is_lookup
from penstock.spec.script.hidden_times import HiddenTimes
from penstock.spec.script.row_times import PARTITION_TIME, timed_rows, window_columns
from penstock.spec.script.sections import Sections
from penstock.spec.script.statements import CreateTable, CreateView, Statement
from penstock.spec.script.tokens import Text
from penstock.spec.tree.nodes import File


class TableInputs:
    """The names of the nodes whose rows each table receives.

    `written` are the names of the tables that are sinks, in lower case.
    """

    def __init__(
        self,
        file: File,
        statements: Sequence[Statement],
        written: Collection[str],
        sections: Sections,
        times: HiddenTimes,
        dialect: Dialect,
    ) -> None:
        self._file, self._statements, self._written = file, statements, written
        self._sections, self._times, self._dialect = sections, times, dialect
        self._inputs: dict[str, list[Text]] = {}

    def of(self, table: CreateTable) -> list[Text]:
        """Returns the names of the nodes of a table."""
        return self._inputs.get(table.name.value.lower(), [])

    def add(
        self,
        table: CreateTable,
        query: Text,
        columns: Sequence[Text] | None = None,
        origin: Text | None = None,
    ) -> None:
        """Adds a query as an input of a table. Its columns are assigned by position.

        `columns` defaults to all columns of the table. `origin` is the place of errors.
        """
        inputs = self._inputs.setdefault(table.name.value.lower(), [])
        if (node := self._whole_node(table, query)) is not None:
            inputs.append(node)
            return
        place = origin or query
        name = self._sections.helper(table.name._replace(start=place.start, end=place.end), "query")
        by_position = bool(table.columns.columns)
        is_written = table.options is not None
        is_timed = self._dialect.writes_by_time(table.options or [])
        self._sections.add_transform(
            name, query, by_position=by_position, is_written=is_written, is_timed=is_timed
        )
        if is_timed:
            timed = self._sections.helper(table.name, "times")
            sql = timed_rows(
                name.value, has_window=any(window_columns(query.value)),
                has_hidden_time=self._times.has_time(query.value),
            )  # fmt: skip
            self._sections.add_transform(timed, origin or table.name, sql)
            name = timed
        if table.columns.columns:
            rows = self._sections.helper(table.name, "rows")
            kept = [PARTITION_TIME] if is_timed else []
            sql = assignment(self._file, name.value, table.columns.columns, columns, kept)
            self._sections.add_transform(rows, origin or table.name, sql)
            name = rows
        inputs.append(name)

    def _whole_node(self, table: CreateTable, query: Text) -> Text | None:
        """Returns the node whose rows a table without columns takes: `SELECT * FROM node`."""
        name = None if table.columns.columns or table.options is None else selected_table(query)
        if name is None or self._dialect.translates_queries or self._times.has_time(query.value):
            return None
        known = self._nodes.get(name.value.lower())
        return name._replace(value=known) if known is not None else None

    @cached_property
    def _nodes(self) -> dict[str, str]:
        """The names of views, of sources that are streams, and of tables of queries."""
        return {
            statement.name.value.lower(): statement.name.value
            for statement in self._statements
            if isinstance(statement, CreateView)
            or (
                isinstance(statement, CreateTable)
                and not is_lookup(statement)
                and (statement.options is None or statement.name.value.lower() not in self._written)
            )
        }
