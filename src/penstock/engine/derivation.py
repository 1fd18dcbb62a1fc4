"""Derivation of DataFrames: the outputs of transforms from their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.core.errors import raise_all
from penstock.engine.analysis.column_checks import (
    check_duplicate_columns,
    check_operation,
    check_primary_key,
)
from penstock.engine.analysis.errors import locate_errors
from penstock.engine.analysis.unknown_names import unknown_names
from penstock.engine.analysis.verification import check_decisions
from penstock.engine.build_context import BuildContext
from penstock.engine.catalyst.arrow_map import map_in_arrow
from penstock.engine.catalyst.columns import exchange_schema, has_variant, sink_schema, to_spark
from penstock.engine.catalyst.same_type_casts import without_same_type_casts
from penstock.engine.catalyst.variants import mark_variants, variants_to_json
from penstock.engine.catalyst.views import create_view
from penstock.engine.checkpoints.stream_state import has_timed_windows
from penstock.engine.deduplication.plan import by_event_time
from penstock.engine.functions.register import name_columns, register_functions
from penstock.engine.lookups.key_lookup import KeyLookup
from penstock.engine.lookups.lookup_joins import join_lookups
from penstock.engine.lookups.node_lookup import key_lookup
from penstock.engine.lookups.table_checks import check_types, registered_checks
from penstock.engine.sources.known_operations import KnownOperations
from penstock.engine.tasks.carried_rows import DIRECTORY as CARRIED
from penstock.engine.tasks.function import Chain, Step
from penstock.engine.tasks.rejected_rows import RejectedRows
from penstock.engine.updating.batch import UpdatingBatch, check_transform
from penstock.engine.updating.changelog import as_inserts
from penstock.engine.updating.template import table_of
from penstock.engine.windows.calendar_rows import without_untimed_rows
from penstock.engine.windows.calendar_windows import by_calendar_windows
from penstock.engine.windows.event_time_groups import by_windows_only
from penstock.engine.windows.null_keys import by_known_keys
from penstock.engine.windows.time_bounds import by_time_bounds_only
from penstock.plan.model import Query
from penstock.plan.node import Node

Derive = Callable[[Node, Mapping[str, DataFrame], Query, SparkSession], DataFrame]
"""A function that returns the output of a transform (see `Derivation.derive`)."""


@dataclass(frozen=True)
class Checks:
    """The checks of the rows of a stream: the parameters of `BuildContext` for them."""

    read_columns: Mapping[str, frozenset[int]]
    of_joins: bool


@dataclass
class Analysis:
    """Results of the analysis of a plan in a session, which its builders share.

    `verified` are the nodes whose SQL agrees with the plan. `needs_input` has the updating nodes
    whose results only rows of the input change. `registered` are the sessions with the functions
    of the pipeline. `typed` has the frames of queries without rows. `outputs` has the columns of
    batch functions for an input, with the version of the function. `checks` has the
    checks of queries that have started with them. `compared_states` are the checkpoints whose state
    fits their query.
    """

    verified: set[str] = field(default_factory=set)
    needs_input: dict[str, bool] = field(default_factory=dict)
    registered: set[object] = field(default_factory=set)
    typed: dict[str, Mapping[str, DataFrame]] = field(default_factory=dict)
    outputs: dict[tuple[str, bytes], tuple[object, pa.Schema]] = field(default_factory=dict)
    checks: dict[str, Checks] = field(default_factory=dict)
    compared_states: set[Path] = field(default_factory=set)

    def output_of(self, node: Node, input_: pa.Schema) -> pa.Schema:
        """Returns the columns of a batch function, whose code runs once for each version of it.

        The code may run in a fork of the driver, which has fewer threads at the start of a run.
        """
        assert node.batch_function is not None
        key, version = (node.name, input_.serialize().to_pybytes()), node.batch_function.version()
        known = self.outputs.get(key)
        if known is None or known[0] != version:
            known = self.outputs[key] = version, node.batch_function.output(input_)
        return known[1]


@dataclass
class Derivation(BuildContext):
    """The derivation of the outputs of transforms.

    Without `updating` the rows of updating transforms are those of a table, as inserts.
    """

    updating: UpdatingBatch | None = None
    analysis: Analysis = field(default_factory=Analysis)

    def derive(
        self, node: Node, frames: Mapping[str, DataFrame], query: Query, session: SparkSession
    ) -> DataFrame:
        """Returns the output of a transform and registers it as a temporary view."""
        inputs = {name: frames[name] for name in node.inputs}
        with locate_errors(self.plan, node):
            if node.frame_transform is not None:
                self.register_functions(session)
                checks = self._checks(node, query)
                with registered_checks(checks, session):
                    frame = self._analyzed(node, inputs, query, session)
                if self.plan.functions:
                    frame = name_columns(frame)
                self._verify(node, frame, inputs, checks)
            else:
                (frame,) = inputs.values()
                step = self.make_step(node, frame.schema, query)
                if step.transform.whole_batches:
                    frame = frame.coalesce(1)
                frame = map_in_arrow(variants_to_json(frame), Chain([step]), to_spark(step.rows))
                frame = mark_variants(frame, step.rows)
            check_duplicate_columns(node, frame)
            check_primary_key(node, frame)
            check_operation(node, frame)
            if self.updating is not None and node.computes_operations:
                frame = self._check_operations(node, frame, query, self.updating)
            create_view(frame, node.name)
        return frame

    def _check_operations(
        self, node: Node, frame: DataFrame, query: Query, updating: UpdatingBatch
    ) -> DataFrame:
        """Returns rows for the state of a query, without those whose operation is unknown."""
        assert node.operation is not None
        check = KnownOperations(node.operation, self.make_spool(node, query, "output"))
        columns = sink_schema(frame.schema)
        known = map_in_arrow(variants_to_json(frame), check, to_spark(columns))
        return updating.cache(mark_variants(known, columns))

    def _analyzed(
        self, node: Node, inputs: Mapping[str, DataFrame], query: Query, session: SparkSession
    ) -> DataFrame:
        """Returns the output of a relation. Raises the errors of all unknown names."""
        try:
            return self._relate_rows(node, inputs, query, session)
        except AnalysisException as error:
            raise_all(unknown_names(self.plan, node, error, inputs, session))
            raise

    def _relate_rows(
        self, node: Node, inputs: Mapping[str, DataFrame], query: Query, session: SparkSession
    ) -> DataFrame:
        """Returns the output of a relation.

        Spark does not analyze subqueries of streams. A relation that is computed on batches has no
        rows here if it has such subqueries.
        """
        assert node.relation is not None
        streams = frozenset(name for name, rows in inputs.items() if rows.isStreaming)
        if node.name in query.stream_nodes or not (streams and node.relation.has_subqueries):
            return self.relate(node, inputs, query, session)
        try:
            tables = {name: session.createDataFrame([], inputs[name].schema) for name in streams}
            for name, table in tables.items():
                create_view(table, name)
            return self.relate(node, {**inputs, **tables}, query, session)
        finally:
            for name, frame in inputs.items():
                create_view(frame, name)

    def relate(
        self, node: Node, inputs: Mapping[str, DataFrame], query: Query, session: SparkSession
    ) -> DataFrame:
        """Returns the output of a relation; of an updating one its changes."""
        assert node.frame_transform is not None
        if not node.updating:
            transform = node.frame_transform
            if transform.rejects_rows:
                transform = copy(transform)
                transform.rejects = RejectedRows(self.make_spool(node, query, "transform"))
            frame = transform.relate(inputs, session)
            if self.plan.keyed_lookups and node.name in self.plan.streams:
                frame = join_lookups(frame)
            if not frame.isStreaming:
                frame = by_event_time(frame)
            if node.operation is None and has_timed_windows(self.checkpoint):
                # A change without a time must reach the sinks.
                frame = without_untimed_rows(frame)
            frame = by_calendar_windows(without_same_type_casts(frame))
            return by_known_keys(by_time_bounds_only(by_windows_only(frame)))
        try:
            if self.updating is not None:
                return self.updating.derive(node, inputs)
            tables = {name: self.without_operation(name, frame) for name, frame in inputs.items()}
            if node.name not in self.analysis.verified:
                has_rows = check_transform(node, tables, self.plan.streams, session)
                self.analysis.needs_input[node.name] = not has_rows
            untimed = not has_timed_windows(self.checkpoint)
            table = table_of(node, tables, session, keeps_untimed=untimed)
            return as_inserts(table, node.operation)
        finally:
            for name, frame in inputs.items():
                create_view(frame, name)

    def needs_input(self, query: Query) -> bool:
        """Returns whether a batch of an updating query without rows certainly has no changes."""
        nodes = [self.plan.nodes[name] for name in query.batch_nodes]
        return all(
            self.analysis.needs_input.get(node.name, False)
            if node.updating
            else not node.batch_scoped
            for node in nodes
        )

    def without_operation(self, name: str, frame: DataFrame) -> DataFrame:
        """Returns the rows of a node without their operation."""
        operation = self.plan.nodes[name].operation
        return frame if operation is None else frame.drop(operation)

    def register_functions(self, session: SparkSession) -> None:
        """Registers the functions of the pipeline, once in each session."""
        java_session: Any = session._jsparkSession
        key = java_session.hashCode() if self.plan.functions else None
        if key is not None and key not in self.analysis.registered:
            register_functions(self.plan.functions, session)
            self.analysis.registered.add(key)

    def _checks(self, node: Node, query: Query) -> dict[str, KeyLookup]:
        """Returns the lookups of the dynamic tables that a node checks."""
        tables = [self.plan.nodes[name] for name in node.checked_tables]
        return {table.name: key_lookup(self, table, query) for table in tables}

    def _verify(
        self, node: Node, frame: DataFrame, inputs: Mapping[str, DataFrame],
        checks: Mapping[str, KeyLookup],
    ) -> None:  # fmt: skip
        """Compares the plan with Spark's analysis, once for each node. Raises PlanError."""
        if node.name not in self.analysis.verified:
            check_types(frame, checks)
            streams = {name: inputs[name] for name in inputs if name in self.plan.streams}
            check_decisions(node, frame, streams)
            self.analysis.verified.add(node.name)

    def make_step(self, node: Node, columns: StructType, query: Query) -> Step:
        """Returns the task step of a batch function for input of these columns."""
        assert node.batch_function is not None
        with locate_errors(self.plan, node):
            input_ = sink_schema(columns)
            rows = exchange_schema(self.analysis.output_of(node, input_))
        spool = self.make_spool(node, query, "transform")
        marked = input_ if has_variant(columns) else None
        carried = None
        if node.batch_function.carries_rows and self.checkpoint is not None:
            carried = self.checkpoint / CARRIED / node.name
        return Step(node.batch_function, rows, spool, self.run_id, input=marked, carried=carried)
