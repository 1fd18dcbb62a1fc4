"""DataFrames of tables: static tables and lookup tables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.engine.analysis import locate_errors
from penstock.engine.build_context import BuildContext
from penstock.engine.columns import to_spark
from penstock.engine.key_lookup import KeyLookup
from penstock.engine.lookup_rows import apply_changes
from penstock.engine.lookup_symbols import lookup_table
from penstock.engine.lookup_table import LOOKUPS, LookupTask
from penstock.engine.source import SourceTask
from penstock.engine.source_readers import read_all
from penstock.engine.source_tasks import make_source_task, source_rows, typed_source
from penstock.engine.variants import mark_variants
from penstock.engine.views import create_view
from penstock.plan.lookups import lookup_operation, table_columns
from penstock.plan.model import Node, Query
from penstock.sdk import Capability, LookupSource
from penstock.spec.node_models import Lookup

CACHE_BYTES = 8 << 20
"""The default size of the cache of a lookup table in a process."""


@dataclass
class TableReader(BuildContext):
    """The reader of the tables of a plan. Static tables are read once."""

    _static: dict[str, DataFrame] = field(default_factory=dict)
    _lookups: dict[tuple[Path, str], DataFrame] = field(default_factory=dict)

    def read_static(self, name: str) -> DataFrame:
        """Returns a table, read on the first call. A lookup table has its rows at this time."""
        node = self.plan.nodes[name]
        if node.can(Capability.LOOKUP_BY_KEY):
            return self._read_keys(node, Query(name, name, (), (), ()))
        if name not in self._static:
            with locate_errors(self.plan, node):
                task = self._table_task(node)
                columns = table_columns(node, task.rows)
                table = pa.Table.from_batches(read_all(task), schema=task.rows)
                if node.lookup:
                    key, operation = node.primary_key, lookup_operation(node)
                    table = apply_changes(columns.empty_table(), table, key, operation)
                frame = self.session.createDataFrame(table, to_spark(columns))
                self._static[name] = mark_variants(frame, columns)
        return self._static[name]

    def _table_task(self, node: Node) -> SourceTask:
        """Returns the task of reading a table, whose dead letters have a spool of their own."""
        query = Query(node.name, node.name, (), (), (), dead_letter_nodes=frozenset([node.name]))
        return make_source_task(self, node, query)

    def read_table(self, name: str, query: Query) -> DataFrame:
        """Returns a table of a query. A lookup table has its rows at the start of each batch.

        Without a checkpoint the batches have no numbers, and a lookup table is read once.
        """
        node = self.plan.nodes[name]
        if node.can(Capability.LOOKUP_BY_KEY):
            return self._read_keys(node, query)
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
                lookup = self._key_lookup(node, query)
                frame = lookup_table(lookup, self.session)
                self._lookups[key] = mark_variants(frame, lookup.rows)
        return self._lookups[key]

    def _key_lookup(self, node: Node, query: Query) -> KeyLookup:
        """Returns the parameters of the lookups of a node in tasks."""
        source, options = node.source, node.lookup
        assert isinstance(source, LookupSource) and options is not None
        rows = source_rows(node)
        limit = options.cache.max_bytes
        return KeyLookup(
            typed_source(source, rows),
            pa.schema([field.with_nullable(True) for field in rows]),
            source.metadata_columns,
            replace(self.make_spool(node, query, "decode"), by_content=True),
            options.cache.ttl,
            CACHE_BYTES if limit is None else limit,
            self.run_id,
        )

    def _read_lookup(
        self, node: Node, query: Query, options: Lookup, checkpoint: Path
    ) -> DataFrame:
        """Returns a lookup table, which tasks read. Spark estimates its size by the first rows."""
        task = self._table_task(node)
        reports = self.report_dead_letters and node.name in query.dead_letter_nodes
        spool = replace(task.spool, report_dead_letters=reports, by_content=True)
        task = replace(task, spool=spool)
        columns = table_columns(node, task.rows)
        directory = str(checkpoint / LOOKUPS / node.name)
        lookup = LookupTask(
            task, columns, lookup_operation(node), options.cache.ttl, directory, self.run_id
        )
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
