"""The nodes of a pipeline, from the statements of a script."""

from __future__ import annotations

import re
from typing import Literal

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean
from penstock.spec.script.assignment import renamed, union
from penstock.spec.script.dynamic_tables import dynamic_table_node, is_dynamic
from penstock.spec.script.event_times import AssumedTimes, is_lookup
from penstock.spec.script.function import CreateFunction
from penstock.spec.script.hidden_times import HiddenTimes
from penstock.spec.script.option_tree import OptionTree, Tree
from penstock.spec.script.sections import Sections
from penstock.spec.script.settings import add_setting
from penstock.spec.script.source_tables import SourceTables
from penstock.spec.script.statements import (
    CreateTable,
    CreateView,
    Insert,
    Select,
    Set,
    Statement,
)
from penstock.spec.script.table_inputs import TableInputs
from penstock.spec.script.tables import Tables
from penstock.spec.script.tokens import Text
from penstock.spec.script.tree_nodes import derived_node, key, map_node, names_node
from penstock.spec.script.unread import UnreadStatements
from penstock.spec.tree.nodes import File, Node

_KINDS = ("source", "sink", "lookup")
_PRINTED = "result"


class ScriptNodes:
    """The sections of a pipeline. Errors are in `errors`, warnings in `warnings`."""

    def __init__(self, file: File, tables: Tables, unread: UnreadStatements) -> None:
        """Reads statements. `unread` are those with errors, to which it adds statements."""
        statements = tables.statements
        self._file, self._statements, self._unread = file, statements, unread
        self._dialect = tables.dialect
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
        self._written |= self._inserts.keys() | unread.written
        self._printed = 0
        times = AssumedTimes(statements, tables.dialect)
        self._times = self._hidden_times(times)
        self._sections = Sections(file, self._times, tables.dialect)
        self._inputs = TableInputs(
            file, statements, self._written, self._sections, self._times, tables.dialect
        )
        self._sources = SourceTables(file, self._sections, times, tables.dialect)
        self.settings = Tree(file)
        self.errors: list[SpecError] = []
        self.warnings: list[SpecError] = []

    @property
    def sections(self) -> dict[str, dict[Text, Node]]:
        """The sections of the pipeline that have nodes or functions, by name."""
        return {"functions": self._sections.functions, **self._sections.nodes}

    def _hidden_times(self, times: AssumedTimes) -> HiddenTimes:
        """Returns the event times that the rows of tables and views have beside their columns."""
        tables = [
            name
            for name, table in self._tables.items()
            if name not in self._written and times.metadata(table) is not None
        ]
        queries = {
            statement.name.value.lower(): statement.query.value
            for statement in self._statements
            if isinstance(statement, CreateView | CreateTable)
            and statement.query is not None
            and not (isinstance(statement, CreateView) and statement.columns)
        }
        return HiddenTimes(tables, queries)

    def add_all(self) -> None:
        """Adds the nodes of all statements."""
        for statement in self._statements:
            try:
                self._add(statement)
            except SpecError as error:
                self._report(error, statement)
        for name, table in self._tables.items():
            try:
                if name in self._written and table.options is not None:
                    self._add_sink(table)
                elif table.options is None and table.query is None:
                    self._add_memory_table(table)
            except SpecError as error:
                self._report(error, table)

    def _report(self, error: SpecError, statement: Statement) -> None:
        """Adds an error, or a warning if a table is neither written nor read."""
        if error.code != "unwritten-table":
            self.errors.append(error)
        elif not self._unread.may_write(statement):
            (self.errors if self._is_read(statement) else self.warnings).append(error)
        self._unread.skip(statement)

    def _is_read(self, table: Statement) -> bool:
        """Returns whether the name of a table is in a query."""
        assert isinstance(table, CreateTable)
        name = re.compile(rf"\b{re.escape(table.name.value)}\b", re.IGNORECASE)
        queries = (getattr(each, "query", None) for each in self._statements)
        return any(name.search(query.value) for query in queries if isinstance(query, Text))

    def _add(self, statement: Statement) -> None:
        match statement:
            case CreateTable(query=None, options=None):
                pass
            case CreateTable(options=None, query=Text() as query):
                self._sections.add_transform(statement.name, query)
            case CreateTable():
                self._add_table(statement)
            case CreateView(columns=[]):
                self._sections.add_transform(statement.name, statement.query)
            case CreateView():
                self._add_renamed(statement)
            case Insert():
                self._add_insert(statement)
            case Select():
                self._add_printed(statement.query)
            case CreateFunction():
                self._sections.add_function(statement)
            case Set():
                add_setting(self._file, self.settings, statement)

    def _add_table(self, table: CreateTable) -> None:
        if is_dynamic(table):
            if table.query is not None:
                self._add_dynamic_table(table, self._sections.query_node(table.query))
            elif table.name.value.lower() not in self._written:
                self._add_dynamic_table(table)
        elif table.query is not None:
            self._inputs.add(table, table.query)
        elif table.name.value.lower() not in self._written:
            self._sources.add(table, self._options(table, "source"))

    def _add_insert(self, insert: Insert) -> None:
        table = self._tables.get(insert.table.value.lower())
        if table is None:
            name = self._sections.helper(insert.table, "query")
            self._sections.add_transform(name, insert.query, is_written=True)
            if self._unread.missing.may_have(insert.table.value):
                return
            raise SpecError(
                f'unknown table "{insert.table.value}"',
                code="unknown-table",
                where=self._file.location(insert.table.start, insert.table.end),
                hint=did_you_mean(insert.table.value, [t.name.value for t in self._tables.values()])
                or "create the table with CREATE TABLE ... WITH",
            )
        self._inputs.add(table, insert.query, insert.columns or None, insert.table)

    def _add_renamed(self, view: CreateView) -> None:
        """Adds a view that names the columns of its query."""
        query = self._sections.helper(view.name, "query")
        self._sections.add_transform(query, view.query, by_position=True)
        sql = renamed(query.value, [column.value for column in view.columns])
        self._sections.add_transform(view.name, view.columns[0], sql)

    def _add_sink(self, table: CreateTable) -> None:
        """Adds a sink, unless all queries that write it have errors."""
        inputs = self._inputs.of(table)
        if is_dynamic(table):
            if inputs:
                query = derived_node(self._file, union(inputs), table.name)
                self._add_dynamic_table(table, query)
            return
        options = self._options(table, "sink")
        if not inputs:
            return
        if len(inputs) > 1:
            combined = self._sections.helper(table.name, "input")
            self._sections.add_transform(combined, table.name, union(inputs))
            inputs = [combined]
        options.add("from", derived_node(self._file, inputs[0].value, inputs[0]), table.name)
        if table.columns.primary_key:
            key = table.columns.primary_key
            options.add("primary_key", names_node(self._file, key), key[0])
        if table.partitioned_by:
            partitions = (
                each.partition_by(self._file, options.connector) for each in table.partitioned_by
            )
            if names := [each for each in partitions if each is not None]:
                options.add("partition_by", names_node(self._file, names), names[0])
        self._sections.add_node("sinks", table.name, options.node())

    def _add_dynamic_table(self, table: CreateTable, query: Node | None = None) -> None:
        """Adds a dynamic table, which a query fills."""
        options = self._options(table, "source" if query is None else "sink")
        node = dynamic_table_node(self._file, table, options, query)
        self._sections.add_node("transforms", table.name, node)

    def _add_memory_table(self, table: CreateTable) -> None:
        """Adds a table without WITH: the rows of all INSERTs into the table."""
        inputs = self._inputs.of(table)
        if not inputs:
            raise SpecError(
                f'no INSERT writes the table "{table.name.value}", which has no connector',
                code="unwritten-table",
                where=self._file.location(table.name.start, table.name.end),
                hint="add WITH (connector = '...'), or an INSERT INTO the table",
            )
        self._sections.add_transform(table.name, table.name, union(inputs))

    def _add_printed(self, query: Text) -> None:
        self._printed += 1
        number = "" if self._printed == 1 else f"_{self._printed}"
        name = query._replace(value=f"{_PRINTED}{number}_query")
        self._sections.add_transform(name, query, is_written=True)
        entries: dict[Text, Node] = {
            key("type"): derived_node(self._file, "print", query),
            key("from"): derived_node(self._file, name.value, query),
        }
        if self._dialect.printed_format:
            options: dict[Text, Node] = {
                key(name): derived_node(self._file, text, query)
                for name, text in self._dialect.printed_format.items()
            }
            entries[key("format")] = map_node(self._file, options)
        sink = query._replace(value=f"{_PRINTED}{number}")
        self._sections.add_node("sinks", sink, map_node(self._file, entries))

    def _options(self, table: CreateTable, kind: Literal["source", "sink"]) -> OptionTree:
        """Returns the options of a table as a node. Raises SpecError."""
        use: Literal["source", "sink", "lookup"] = "lookup" if is_lookup(table) else kind
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
        translated = self._dialect.translate_options(
            self._file, table.options or [], use, table.name.value,
            [column.type.value for column in table.columns.columns],
        )  # fmt: skip
        options = OptionTree(self._file, translated)
        options.check_kind(table.name, kind, _KINDS, writes)
        if use == "lookup" and not options.has("lookup"):
            options.add("lookup", derived_node(self._file, True, table.name), table.name)
        return options
