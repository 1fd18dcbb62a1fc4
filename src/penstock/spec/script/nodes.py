"""The nodes of a pipeline, from the statements of a script."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean
from penstock.spec.script.arroyo import (
    DELAY,
    EVENT_TIME,
    declared_bound,
    declared_watermark,
    has_time_pattern,
    metadata_name,
    translate_options,
    translate_query,
)
from penstock.spec.script.assignment import (
    assignment,
    quoted,
    selected_table,
    union,
    unique_names,
)
from penstock.spec.script.build import derived_node, list_node, map_node, query_node, text_node
from penstock.spec.script.event_times import event_time_of
from penstock.spec.script.function import CreateFunction
from penstock.spec.script.lift import lift_windows
from penstock.spec.script.option_tree import OptionTree, Tree
from penstock.spec.script.row_times import timed_rows, window_columns
from penstock.spec.script.settings import add_setting
from penstock.spec.script.statements import (
    CreateTable,
    CreateView,
    Insert,
    Select,
    Set,
    Statement,
)
from penstock.spec.script.table import TableColumn
from penstock.spec.script.tables import Tables
from penstock.spec.script.tokens import Text
from penstock.spec.script.watermark import Watermark
from penstock.spec.yaml.nodes import File, Node, ScalarNode
from penstock.sql.dialect.text import Translation

_HIDDEN_TIME = re.compile(r"\b(?:tumble|hop|session|row_time)\s*\(", re.IGNORECASE)
_KINDS = ("source", "sink", "lookup")
_PRINTED = "result"


class ScriptNodes:
    """The sections of a pipeline. Errors are in `errors`."""

    def __init__(self, file: File, tables: Tables, *, complete: bool) -> None:
        """Reads statements. Unless `complete`, other statements have errors."""
        statements = tables.statements
        self._file, self._statements, self._complete = file, statements, complete
        self._is_of_arroyo = tables.is_of_arroyo
        self._tables = {
            statement.name.value.lower(): statement
            for statement in statements
            if isinstance(statement, CreateTable)
        }
        self._written = {
            name for name, table in self._tables.items() if table.options and table.query
        }
        self._inserts = {
            statement.table.value.lower(): statement.table
            for statement in reversed(statements)
            if isinstance(statement, Insert)
        }
        self._written |= self._inserts.keys()
        self._inputs: dict[str, list[Text]] = {}
        self._printed = 0
        self._count: Counter[str] = Counter()
        self.sections: dict[str, dict[Text, Node]] = {
            section: {} for section in ("functions", "sources", "transforms", "sinks")
        }
        self.settings = Tree(file)
        self._names_seen: dict[str, Text] = {}
        self.errors: list[SpecError] = []

    def add_all(self) -> None:
        """Adds the nodes of all statements."""
        for statement in self._statements:
            try:
                self._add(statement)
            except SpecError as error:
                self.errors.append(error)
        for name, table in self._tables.items():
            try:
                if name in self._written and table.options is not None:
                    self._add_sink(table)
                elif table.options is None and table.query is None:
                    self._add_memory_table(table)
            except SpecError as error:
                self.errors.append(error)

    def _add(self, statement: Statement) -> None:
        match statement:
            case CreateTable(query=None, options=None):
                pass
            case CreateTable(options=None, query=Text() as query):
                self._add_transform(statement.name, query)
            case CreateTable():
                self._add_table(statement)
            case CreateView():
                self._add_transform(statement.name, statement.query)
            case Insert():
                self._add_insert(statement)
            case Select():
                self._add_printed(statement.query)
            case CreateFunction():
                self._add_function(statement)
            case Set():
                add_setting(self._file, self.settings, statement)

    def _add_table(self, table: CreateTable) -> None:
        if table.query is not None:
            self._connect(table, table.query)
        elif table.name.value.lower() not in self._written:
            self._add_source(table)

    def _add_source(self, table: CreateTable) -> None:
        options, columns = self._options(table, "source"), table.columns
        if columns.columns and columns.physical:
            types: dict[Text, Node] = {
                column.name: text_node(self._file, column.decoded_type)
                for column in columns.physical
            }
            options.add("schema", map_node(self._file, types), table.name)
        metadata: dict[Text, Node] = {
            column.name: text_node(self._file, metadata_name(column.metadata, table.options or []))
            for column in columns.columns
            if column.metadata
        }
        idle = options.take("idle") if self._has_idle_time(table) else None
        declared = columns.watermark or declared_watermark(table.options or [])
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
            options.add("primary_key", self._names(columns.primary_key), columns.primary_key[0])
        if watermark is not None and not columns.has_generated:
            options.add(*watermark)
        entries = [watermark] if watermark is not None else []
        if columns.has_generated and (late := options.take("late")) is not None:
            entries.append(("late", late[1], late[0]))
        source = self._helper(table.name, "source") if columns.has_generated else table.name
        self._add_node("sources", source, options.node())
        if columns.has_generated:
            self._add_generated(table, source, entries)

    def _add_generated(
        self, table: CreateTable, source: Text, entries: Sequence[tuple[str, Node, Text]]
    ) -> None:
        """Adds the generated columns, and then all columns in the order of the table.

        `entries` are options of the table's last node, with its watermark.
        """
        columns = table.columns.columns
        computed = self._helper(table.name, "generated")
        expressions: dict[Text, Node] = {
            column.name: self._query_node(column.generated)
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
            self._key("type"): derived_node(self._file, type_, name),
            self._key("from"): derived_node(self._file, origin.value, name),
            self._key(option): map_node(self._file, values),
            **{place._replace(value=key): value for key, value, place in entries},
        }
        self._add_node("transforms", name, map_node(self._file, node))

    def _watermark(
        self, watermark: Watermark | None, idle: tuple[Text, Node] | None
    ) -> tuple[str, Node, Text] | None:
        """Returns the option watermark, its value and its place. `idle` is one of its options."""
        if watermark is None:
            return None
        entries: dict[Text, Node] = {self._key("column"): text_node(self._file, watermark.column)}
        if watermark.delay is not None:
            entries[self._key("delay")] = text_node(self._file, watermark.delay)
        if watermark.expression is not None:
            entries[self._key("bound")] = text_node(self._file, watermark.expression)
        entries |= dict([idle] if idle else [])
        return "watermark", map_node(self._file, entries), watermark.column

    def _default_watermark(
        self, table: CreateTable, metadata: dict[Text, Node], idle: tuple[Text, Node] | None
    ) -> tuple[str, Node, Text] | None:
        """Returns the event time that Arroyo assumes, and adds its column, if windows need it."""
        name = None if _is_lookup(table) else event_time_of(table.options or [])
        if name is None or not self._uses_windows:
            return None
        column = table.name._replace(value=EVENT_TIME)
        metadata[column] = derived_node(self._file, name, table.name)
        entries: dict[Text, Node] = {
            self._key("column"): derived_node(self._file, EVENT_TIME, table.name),
            **(
                {self._key("bound"): text_node(self._file, bound)}
                if (bound := declared_bound(table.options or [])) is not None
                else {self._key("delay"): derived_node(self._file, DELAY, table.name)}
            ),
            **dict([idle] if idle else []),
        }
        return "watermark", map_node(self._file, entries), table.name

    def _has_idle_time(self, table: CreateTable) -> bool:
        """Returns whether `idle` belongs to a watermark. Arroyo accepts `idle_micros` without."""
        names = [option.name for option in table.options or []]
        return table.columns.watermark is not None or "idle" not in names

    @cached_property
    def _uses_windows(self) -> bool:
        """Whether a query, or a sink, uses an event time that it does not name."""
        options = (table.options or [] for table in self._tables.values())
        return any(map(_HIDDEN_TIME.search, self._queries)) or any(map(has_time_pattern, options))

    @property
    def _queries(self) -> Iterator[str]:
        for statement in self._statements:
            query = getattr(statement, "query", None)
            if isinstance(query, Text):
                yield query.value

    def _add_function(self, function: CreateFunction) -> None:
        """Adds a function. Raises SpecError if its name is taken."""
        name = function.name
        known = {key.value.lower(): key for key in self.sections["functions"]}
        first = known.get(name.value.lower())
        if first is not None:
            raise SpecError(
                f'duplicate function "{name.value}"',
                code="duplicate-name",
                where=self._file.location(name.start, name.end),
                hint=f"rename one of them; the first is at "
                f"{self._file.location(first.start, first.end)}",
            )
        if function.expression is not None:
            function.add("sql", self._query_node(function.expression))
        self.sections["functions"][name] = function.node(self._file)

    def _add_insert(self, insert: Insert) -> None:
        table = self._tables.get(insert.table.value.lower())
        if table is None and not self._complete:
            return
        if table is None:
            raise SpecError(
                f'unknown table "{insert.table.value}"',
                code="unknown-table",
                where=self._file.location(insert.table.start, insert.table.end),
                hint=did_you_mean(insert.table.value, [t.name.value for t in self._tables.values()])
                or "create the table with CREATE TABLE ... WITH",
            )
        self._connect(table, insert.query, insert.columns or None, insert.table)

    def _connect(
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
        name = self._helper(table.name._replace(start=place.start, end=place.end), "query")
        by_position = bool(table.columns.columns)
        is_written = table.options is not None
        is_timed = has_time_pattern(table.options or [])
        self._add_transform(
            name, query, by_position=by_position, is_written=is_written, is_timed=is_timed
        )
        if is_timed:
            timed = self._helper(table.name, "times")
            sql = timed_rows(name.value, has_window=any(window_columns(query.value)))
            self._add_transform(timed, origin or table.name, sql)
            name = timed
        if table.columns.columns:
            rows = self._helper(table.name, "rows")
            kept = [EVENT_TIME] if is_timed else []
            sql = assignment(self._file, name.value, table.columns.columns, columns, kept)
            self._add_transform(rows, origin or table.name, sql)
            name = rows
        inputs.append(name)

    def _whole_node(self, table: CreateTable, query: Text) -> Text | None:
        """Returns the node whose rows a table without columns takes: `SELECT * FROM node`."""
        name = None if table.columns.columns or table.options is None else selected_table(query)
        if name is None or self._is_of_arroyo:
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
                and not _is_lookup(statement)
                and (statement.options is None or statement.name.value.lower() not in self._written)
            )
        }

    def _add_sink(self, table: CreateTable) -> None:
        """Adds a sink, unless all queries that write it have errors."""
        options = self._options(table, "sink")
        inputs = self._inputs.get(table.name.value.lower(), [])
        if not inputs:
            return
        if len(inputs) > 1:
            combined = self._helper(table.name, "input")
            self._add_transform(combined, table.name, union(inputs))
            inputs = [combined]
        options.add("from", derived_node(self._file, inputs[0].value, inputs[0]), table.name)
        if table.columns.primary_key:
            key = table.columns.primary_key
            options.add("primary_key", self._names(key), key[0])
        if table.partitioned_by:
            names = [each.directory_column(self._file) for each in table.partitioned_by]
            options.add("partition_by", self._names(names), names[0])
        self._add_node("sinks", table.name, options.node())

    def _add_memory_table(self, table: CreateTable) -> None:
        """Adds a table without WITH: the rows of all INSERTs into the table."""
        inputs = self._inputs.get(table.name.value.lower(), [])
        if not inputs:
            raise SpecError(
                f'no INSERT writes the table "{table.name.value}", which has no connector',
                code="unwritten-table",
                where=self._file.location(table.name.start, table.name.end),
                hint="add WITH (connector = '...'), or an INSERT INTO the table",
            )
        self._add_transform(table.name, table.name, union(inputs))

    def _add_printed(self, query: Text) -> None:
        self._printed += 1
        number = "" if self._printed == 1 else f"_{self._printed}"
        name = query._replace(value=f"{_PRINTED}{number}_query")
        self._add_transform(name, query, is_written=True)
        entries: dict[Text, Node] = {
            self._key("type"): derived_node(self._file, "print", query),
            self._key("from"): derived_node(self._file, name.value, query),
        }
        sink = query._replace(value=f"{_PRINTED}{number}")
        self._add_node("sinks", sink, map_node(self._file, entries))

    def _add_transform(
        self,
        name: Text,
        query: Text,
        sql: str | None = None,
        *,
        by_position: bool = False,
        is_written: bool = False,
        is_timed: bool = False,
    ) -> None:
        """Adds a query. `sql` replaces the text of the script.

        Columns of a query that are read by position may have the same name. `is_written` is whether
        a sink writes the rows, and `is_timed` whether their event time follows from a window.
        """
        if sql is None:
            query, parts = lift_windows(query, name)
            for part, part_query in parts:
                self._add_query(part, self._query_node(part_query), part)
            text = self._query_node(
                query, is_written=is_written, by_position=by_position, is_timed=is_timed
            )
        else:
            text = derived_node(self._file, sql, query)
        self._add_query(name, text, name)

    def _query_node(
        self,
        query: Text,
        *,
        is_written: bool = False,
        by_position: bool = False,
        is_timed: bool = False,
    ) -> Node:
        """Returns the text of a query or an expression; of Arroyo in its meaning there."""
        edited = Translation.of(query.value)
        if self._is_of_arroyo:
            edited = translate_query(query.value, is_written=is_written)
        if by_position:
            edited = edited.edit(unique_names(edited.text))
        if is_timed:
            edited = edited.edit(window_columns(edited.text))
        return query_node(self._file, query, edited)

    def _add_query(self, name: Text, text: Node, origin: Text) -> None:
        """Adds a transform of type `sql`."""
        type_ = derived_node(self._file, "sql", origin)
        entries: dict[Text, Node] = {self._key("type"): type_, self._key("sql"): text}
        self._add_node("transforms", name, map_node(self._file, entries))

    def _add_node(self, section: str, name: Text, node: Node) -> None:
        """Adds a node. Raises SpecError if its name is taken."""
        first = self._names_seen.setdefault(name.value.lower(), name)
        if first is not name:
            raise SpecError(
                f'duplicate name "{name.value}"',
                code="duplicate-name",
                where=self._file.location(name.start, name.end),
                hint=f"rename one of them; the first is at "
                f"{self._file.location(first.start, first.end)}",
            )
        self.sections[section][name] = node

    def _options(self, table: CreateTable, kind: Literal["source", "sink"]) -> OptionTree:
        """Returns the options of a table as a node. Raises SpecError."""
        use: Literal["source", "sink", "lookup"] = "lookup" if _is_lookup(table) else kind
        writes = self._inserts.get(table.name.value.lower(), table.name)
        watermark = table.columns.watermark
        if kind == "sink" and (use == "lookup" or watermark is not None):
            reason = "is a lookup table" if use == "lookup" else "has a watermark, as a source,"
            raise SpecError(
                f'the table "{table.name.value}" {reason} and cannot be written',
                code="read-only-table",
                where=self._file.location(writes.start, writes.end),
                hint="create another table for writing",
            )
        translated = translate_options(
            self._file, table.options or [], use, table.name.value,
            [column.type.value for column in table.columns.columns],
        )  # fmt: skip
        options = OptionTree(self._file, translated)
        options.check_kind(table.name, kind, _KINDS, writes)
        if use != "source" and any(each.name == "idle_micros" for each in table.options or []):
            options.take("idle")
        if use == "lookup" and not options.has("lookup"):
            options.add("lookup", derived_node(self._file, True, table.name), table.name)
        return options

    def _helper(self, name: Text, suffix: str) -> Text:
        """Returns the name of a node that the script does not name."""
        base = f"{name.value}_{suffix}"
        self._count[base] += 1
        count = self._count[base]
        return name._replace(value=base if count == 1 else f"{base}_{count}")

    def _names(self, names: Sequence[Text]) -> Node:
        return list_node(self._file, [derived_node(self._file, name.value, name) for name in names])

    def _key(self, name: str) -> Text:
        return Text(name, 0, 0)


def _is_lookup(table: CreateTable) -> bool:
    """Returns whether a table is read for joins, as its statement or an option states."""
    options = {option.name: option.value for option in table.options or []}
    kind = options.get("type")
    declared = isinstance(kind, ScalarNode) and kind.value == "lookup"
    return table.lookup or declared or any(name.startswith("lookup.") for name in options)


def _typed(column: TableColumn) -> str:
    """Returns the column, cast to its type if it is generated."""
    name = quoted(column.name.value)
    return f"CAST({name} AS {column.type.value})" if column.generated else name
