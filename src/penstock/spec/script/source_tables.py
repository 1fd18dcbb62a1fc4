"""Tables of a script that are sources: columns, generated columns and watermarks."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.names import quote_name
from penstock.spec.script.dialect import DELAY, Dialect
from penstock.spec.script.event_times import AssumedTimes
from penstock.spec.script.hidden_times import EVENT_TIME
from penstock.spec.script.option_tree import OptionTree
from penstock.spec.script.sections import Sections
from penstock.spec.script.statements import CreateTable
from penstock.spec.script.table import TableColumn
from penstock.spec.script.tokens import Text
from penstock.spec.script.tree_nodes import (
    derived_node,
    key,
    map_node,
    names_node,
    text_node,
    type_node,
)
from penstock.spec.script.watermark import Watermark
from penstock.spec.tree.nodes import File, Node


class SourceTables:
    """Adds the nodes of tables that are sources."""

    def __init__(
        self, file: File, sections: Sections, times: AssumedTimes, dialect: Dialect
    ) -> None:
        self._file, self._sections, self._times, self._dialect = file, sections, times, dialect

    def add(self, table: CreateTable, options: OptionTree) -> None:
        """Adds a source, and transforms for generated columns."""
        columns = table.columns
        if columns.columns and columns.physical:
            types: dict[Text, Node] = {
                column.name: type_node(self._file, column.decoded_type)
                for column in columns.physical
            }
            options.add("schema", map_node(self._file, types), table.name)
        metadata: dict[Text, Node] = {
            column.name: text_node(
                self._file, self._dialect.metadata_name(column.metadata, table.options or [])
            )
            for column in columns.columns
            if column.metadata
        }
        idle = options.take("idle") if self._has_idle_time(table) else None
        declared = columns.watermark or self._dialect.watermark(table.options or [])
        watermark = self._watermark(declared, idle) or self._default_watermark(
            table, metadata, idle
        )
        if metadata:
            options.add("metadata", map_node(self._file, metadata), table.name)
        types_of_metadata: dict[Text, Node] = {
            column.name: text_node(self._file, column.type)
            for column in columns.columns
            if column.metadata and not column.conversion
        }
        if types_of_metadata:
            options.add("metadata_types", map_node(self._file, types_of_metadata), table.name)
        if columns.primary_key:
            options.add(
                "primary_key", names_node(self._file, columns.primary_key), columns.primary_key[0]
            )
        if watermark is not None and not columns.has_generated:
            options.add(*watermark)
        entries = [watermark] if watermark is not None else []
        if columns.has_generated and (late := options.take("late")) is not None:
            entries.append(("late", late[1], late[0]))
        source = (
            self._sections.helper(table.name, "source") if columns.has_generated else table.name
        )
        self._sections.add_node("sources", source, options.node())
        if columns.has_generated:
            self._add_generated(table, source, entries)

    def _add_generated(
        self, table: CreateTable, source: Text, entries: Sequence[tuple[str, Node, Text]]
    ) -> None:
        """Adds the generated columns, and then all columns in the order of the table.

        `entries` are options of the table's last node, with its watermark.
        """
        columns = table.columns.columns
        computed = self._sections.helper(table.name, "generated")
        expressions: dict[Text, Node] = {
            column.name: self._sections.query_node(column.generated)
            for column in columns
            if column.generated
        }
        expressions |= {
            column.name: derived_node(self._file, column.conversion, column.name)
            for column in columns
            if column.conversion
        }
        values: dict[Text, Node] = {
            column.name: derived_node(self._file, _typed(column), column.name) for column in columns
        }
        if any(key == "watermark" and place is table.name for key, _, place in entries):
            time = table.name._replace(value=EVENT_TIME)
            values[time] = derived_node(self._file, EVENT_TIME, table.name)
        self._add_columns(computed, "map", source, ("set", expressions))
        self._add_columns(table.name, "select", computed, ("columns", values), entries)

    def _add_columns(
        self,
        name: Text,
        type_: str,
        origin: Text,
        columns: tuple[str, dict[Text, Node]],
        entries: Sequence[tuple[str, Node, Text]] = (),
    ) -> None:
        """Adds a transform of the rows of one node."""
        option, values = columns
        node = {
            key("type"): derived_node(self._file, type_, name),
            key("from"): derived_node(self._file, origin.value, name),
            key(option): map_node(self._file, values),
            **{place._replace(value=key): value for key, value, place in entries},
        }
        self._sections.add_node("transforms", name, map_node(self._file, node))

    def _watermark(
        self, watermark: Watermark | None, idle: tuple[Text, Node] | None
    ) -> tuple[str, Node, Text] | None:
        """Returns the option watermark, its value and its place. `idle` is one of its options."""
        if watermark is None:
            return None
        entries: dict[Text, Node] = {key("column"): text_node(self._file, watermark.column)}
        if watermark.delay is not None:
            entries[key("delay")] = text_node(self._file, watermark.delay)
        if watermark.expression is not None:
            entries[key("bound")] = text_node(self._file, watermark.expression)
        entries |= dict([idle] if idle else [])
        return "watermark", map_node(self._file, entries), watermark.column

    def _default_watermark(
        self, table: CreateTable, metadata: dict[Text, Node], idle: tuple[Text, Node] | None
    ) -> tuple[str, Node, Text] | None:
        """Returns the assumed event time, and adds its column, if windows need it."""
        name = self._times.metadata(table)
        if name is None:
            return None
        column = table.name._replace(value=EVENT_TIME)
        metadata[column] = derived_node(self._file, name, table.name)
        entries: dict[Text, Node] = {
            key("column"): derived_node(self._file, EVENT_TIME, table.name),
            **(
                {key("bound"): text_node(self._file, bound)}
                if (bound := self._dialect.bound(table.options or [])) is not None
                else {key("delay"): derived_node(self._file, DELAY, table.name)}
            ),
            **dict([idle] if idle else []),
        }
        return "watermark", map_node(self._file, entries), table.name

    def _has_idle_time(self, table: CreateTable) -> bool:
        """Returns whether `idle` belongs to a watermark. Options of dialects may be without one."""
        names = [option.name for option in table.options or []]
        return table.columns.watermark is not None or "idle" not in names


def _typed(column: TableColumn) -> str:
    """Returns the column, cast to its type if it is generated."""
    name = quote_name(column.name.value)
    return f"CAST({name} AS {column.type.value})" if column.generated else name
