"""DataFrames of tables: static tables and lookup tables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.engine.analysis.errors import locate_errors
from penstock.engine.build_context import BuildContext
from penstock.engine.catalyst.columns import to_spark
from penstock.engine.catalyst.variants import mark_variants
from penstock.engine.catalyst.views import create_view
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.driver_files.server import server_of
from penstock.engine.lookups.lookup_rows import apply_changes
from penstock.engine.lookups.lookup_symbols import lookup_table
from penstock.engine.lookups.lookup_table import LOOKUPS, LookupTask
from penstock.engine.lookups.node_lookup import key_lookup
from penstock.engine.sources.source import SourceTask
from penstock.engine.sources.source_readers import read_all
from penstock.engine.sources.source_tasks import make_source_task
from penstock.engine.updating.kept_tables import has_changed, is_kept, keep_table, kept_table
from penstock.plan.lookups import lookup_operation, table_columns
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.sdk import Capability
from penstock.spec.node_models import Lookup


@dataclass
class TableReader(BuildContext):
    """The reader of the tables of a plan. Static tables are read once."""

    _static: dict[str, DataFrame] = field(default_factory=dict)
    _rows: dict[str, pa.Table] = field(default_factory=dict)
    _lookups: dict[tuple[Path, str], DataFrame] = field(default_factory=dict)

    def read_static(self, name: str) -> DataFrame:
        """Returns a table, read on the first call. A lookup table has its rows at this time."""
        node = self.plan.nodes[name]
        if node.can(Capability.LOOKUP_BY_KEY):
            return self._read_keys(node, Query(name, name, (), (), ()))
        if name not in self._static:
            rows = self._read_rows(name)
            self._static[name] = self._table_frame(rows)
        return self._static[name]

    def _read_rows(self, name: str) -> pa.Table:
        """Returns the rows of a table, read on the first call."""
        if name not in self._rows:
            node = self.plan.nodes[name]
            with locate_errors(self.plan, node):
                task = self._table_task(node)
                columns = table_columns(node, task.rows)
                table = pa.Table.from_batches(read_all(task), schema=task.rows)
                if node.lookup:
                    key, operation = node.primary_key, lookup_operation(node)
                    table = apply_changes(columns.empty_table(), table, key, operation)
                self._rows[name] = table.select(columns.names).cast(columns)
        return self._rows[name]

    def _table_frame(self, rows: pa.Table) -> DataFrame:
        frame = self.session.createDataFrame(rows, to_spark(rows.schema))
        return mark_variants(frame, rows.schema)

    def keep_tables(self, query: Query, checkpoint: Path) -> list[str]:
        """Keeps the static tables of an updating query with its state.

        Returns the tables that have other rows than the kept ones, which the query continues with.
        """
        names = [
            name
            for name in (*query.stream_nodes, *query.batch_nodes)
            if query.updating and self.plan.nodes[name].static and not self.plan.nodes[name].lookup
        ]
        is_new = query.past_watermarks is None and OffsetLog(checkpoint).planned is None
        for name in names:
            if is_new or not is_kept(checkpoint, name):
                keep_table(checkpoint, name, self._read_rows(name))
        return [name for name in names if has_changed(checkpoint, name, self._read_rows(name))]

    def _read_kept(self, node: Node, checkpoint: Path) -> DataFrame:
        """Returns a static table with the rows that are kept with the state of a query."""
        key = checkpoint, node.name
        if key not in self._lookups:
            with locate_errors(self.plan, node):
                columns = table_columns(node, self._table_task(node).rows)
                rows = kept_table(checkpoint, node.name, columns)
                self._lookups[key] = (
                    self.read_static(node.name) if rows is None else self._table_frame(rows)
                )
        return self._lookups[key]

    def _table_task(self, node: Node) -> SourceTask:
        """Returns the task of reading a table, whose dead letters have a spool of their own."""
        query = Query(node.name, node.name, (), (), (), dead_letter_nodes=frozenset([node.name]))
        return make_source_task(self, node, query)

    def read_table(self, name: str, query: Query) -> DataFrame:
        """Returns a table of a query. A lookup table has its rows at the start of each batch, and
        a static table of an updating query those at the start of its state.

        Without a checkpoint the batches have no numbers, and a lookup table is read once.
        """
        node = self.plan.nodes[name]
        if node.can(Capability.LOOKUP_BY_KEY):
            return self._read_keys(node, query)
        if query.updating and self.checkpoint is not None and not node.lookup:
            return self._read_kept(node, self.checkpoint)
        if self.checkpoint is None or not node.lookup or not node.can(Capability.LOOKUP):
            return self.read_static(name)
        key = self.checkpoint, name
        if key not in self._lookups:
            with locate_errors(self.plan, node):
                self._lookups[key] = self._read_lookup(node, query, node.lookup, self.checkpoint)
        return self._lookups[key]

    def _read_keys(self, node: Node, query: Query) -> DataFrame:
        """Returns a table whose rows are looked up by key, for queries that join it."""
        key = self.checkpoint or Path(), node.name
        if key not in self._lookups:
            with locate_errors(self.plan, node):
                lookup = key_lookup(self, node, query)
                frame = lookup_table(lookup, self.session)
                self._lookups[key] = mark_variants(frame, lookup.rows)
        return self._lookups[key]

    def _read_lookup(
        self, node: Node, query: Query, options: Lookup, checkpoint: Path
    ) -> DataFrame:
        """Returns a lookup table, which tasks read. Spark estimates its size by the first rows."""
        task = self._table_task(node)
        reports = self.report_dead_letters and node.name in query.dead_letter_nodes
        spool = replace(task.spool, report_dead_letters=reports, by_content=True)
        task = replace(task, spool=spool)
        columns = table_columns(node, task.rows)
        directory, server = checkpoint / LOOKUPS / node.name, server_of(checkpoint)
        lookup = LookupTask(
            task, columns, lookup_operation(node), options.cache.ttl, str(directory), self.run_id,
            None if server is None else server.address,
        )  # fmt: skip
        if server is not None:
            server.tables[str(directory)] = lookup.table
        numbers = self.session.range(0, max(lookup.table(isolated=True).num_rows, 1), 1, 1)
        return mark_variants(numbers.mapInArrow(lookup, to_spark(columns)), columns)

    def empty_table(self, node: Node, query: Query) -> DataFrame:
        """Returns a static table without its rows."""
        if node.can(Capability.LOOKUP_BY_KEY):
            frame = self._read_keys(node, query)
            create_view(frame, node.name)
            return frame
        with locate_errors(self.plan, node):
            rows = table_columns(node, make_source_task(self, node, query).rows)
            frame = mark_variants(self.session.createDataFrame([], to_spark(rows)), rows)
            create_view(frame, node.name)
        return frame
