"""Updating transforms of a query: their changes in a batch, and their state after the batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import analyzed_plan, scala_items
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.checkpoints.state_schema import OperatorSchema, different_state
from penstock.engine.checkpoints.stream_state import has_timed_windows
from penstock.engine.updating.accumulation import Accumulation
from penstock.engine.updating.buckets import buckets_of, rebucket
from penstock.engine.updating.changelog import to_changes, to_inserts, to_weighted_rows
from penstock.engine.updating.checkpoint import ADAPTIVE, changed_setting, compute_all
from penstock.engine.updating.emptiness import has_rows_without_input
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.operator import AffectedFrame, Input, affected_rows, schema_of
from penstock.engine.updating.plan import IncrementalPlan
from penstock.engine.updating.protocols import Selection
from penstock.engine.updating.rows import WEIGHT
from penstock.engine.updating.scalar_subqueries import ScalarSubqueries
from penstock.engine.updating.steps import StateStep
from penstock.engine.updating.supported import check_operators
from penstock.engine.updating.task import Expiry, UpdateState
from penstock.engine.updating.template import empty_table, leaves_of, rdd_of, table_of, table_plan
from penstock.engine.updating.versions import FOLDER, OperatorStateDirectory, StateVersion
from penstock.engine.updating.weighted import Weighted, weighted_leaf
from penstock.plan.graph import upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sdk.operations import OPERATION_COLUMN

_REMOVALS = 20
"""How often rows are removed within `updating_ttl`."""


@dataclass
class UpdatingBatch:
    """The updating transforms of a query in one attempt of a batch.

    Their state before the batch is `version`. The computation of their changes writes the state
    after the batch, which `commit` makes the current one. `time` is that of the batch, in
    milliseconds: the same in each attempt. `select` chooses the computed rows. `keeps_untimed` is
    an argument of `table_of`.
    """

    plan: Plan
    session: SparkSession
    directory: OperatorStateDirectory
    number: int
    time: int
    version: StateVersion
    select: Selection | None = None
    keeps_untimed: bool = False
    _weighted: dict[str, DataFrame] = field(default_factory=dict)
    _operators: dict[str, tuple[BucketFiles, DataFrame]] = field(default_factory=dict)
    steps: list[tuple[str, StateStep] | DataFrame] = field(default_factory=list)
    """The steps of the batch in their order: operators by their names, and cached rows."""
    _schemas: dict[str, OperatorSchema] = field(default_factory=dict)
    _cached: list[DataFrame] = field(default_factory=list)
    _inserts_only: set[str] = field(default_factory=set)

    @classmethod
    def begin(
        cls, plan: Plan, session: SparkSession, checkpoint: Path, number: int
    ) -> UpdatingBatch:
        """Begins an attempt of a batch. Raises StateError if the state is damaged."""
        buckets = buckets_of(session)
        directory = OperatorStateDirectory(checkpoint / FOLDER, buckets)
        time, untimed = OffsetLog(checkpoint).time(number), not has_timed_windows(checkpoint)
        version = rebucket(directory, directory.before(number), buckets)
        return cls(plan, session, directory, number, time, version, keeps_untimed=untimed)

    @classmethod
    def next(cls, plan: Plan, session: SparkSession, checkpoint: Path) -> UpdatingBatch | None:
        """Returns the batch after the last one, to compare its columns; None without a batch.

        Raises StateError if the state is damaged.
        """
        directory = OperatorStateDirectory(checkpoint / FOLDER)
        last = directory.last
        if last is None:
            return None
        version, untimed = directory.before(last + 1), not has_timed_windows(checkpoint)
        return cls(plan, session, directory, last + 1, version.time, version, None, untimed)

    def again(self, select: Selection | None = None) -> UpdatingBatch:
        """Returns the batch for another computation, which replaces that of the same transforms.

        `commit` of both batches makes the state after the last computation the current one.
        """
        return replace(self, select=select, steps=[], _weighted={})

    @property
    def _catalyst(self) -> Catalyst:
        return Catalyst(self.session)

    def derive(self, node: Node, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Returns the changes of an updating transform, with their operations."""
        catalyst = self._catalyst
        weighted: Mapping[str, DataFrame]
        weighted = {name: self._input(name, frames) for name in node.inputs}
        if self.select is not None:
            weighted = self.select.select_inputs(node, weighted)
        leaves = leaves_of(weighted, self.session)
        inputs = {rdd_of(leaf): weighted[name] for name, leaf in leaves.items()}
        tables, untimed = {**weighted, **leaves}, self.keeps_untimed
        table = table_of(node, tables, self.session, keeps_untimed=untimed)
        template = ScalarSubqueries(catalyst, inputs.keys()).replace(table_plan(table))
        inserts = frozenset(rdd_of(leaves[name]) for name in self._inserts_only & leaves.keys())
        select = None
        if self.select is not None:
            select = partial(self.select.select_results, node, frozenset(inputs))
        plan_of_changes = IncrementalPlan(catalyst, inputs, self, node.name, inserts, select)
        rows = plan_of_changes.changes(template)
        plan = catalyst.project(rows.plan, [*scala_items(template.output()), rows.weight])
        frame = self.cache(catalyst.frame(plan))
        self._weighted[node.name] = frame
        if rows.inserts_only:
            self._inserts_only.add(node.name)
        operation = node.operation or OPERATION_COLUMN
        if rows.adds_only:
            return to_inserts(frame, operation)
        return to_changes(frame, node.primary_key, operation)

    def cache(self, rows: DataFrame) -> DataFrame:
        """Caches rows for the batch: all readers get the same rows, or all fail.

        Without a cache Spark leaves out columns that a reader does not need, and their failures.
        """
        # Adaptive execution would compute the rows of the cache before an action.
        with changed_setting(self.session, ADAPTIVE, "false"):
            rows.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        self._cached.append(rows)
        self.steps.append(rows)
        return rows

    def _input(self, name: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Returns the rows of an input with weights, or without weights of a static table."""
        node, frame = self.plan.nodes[name], frames[name]
        if name not in self.plan.streams:
            return frame
        if name not in self._weighted:
            weighted = to_weighted_rows(frame, node.operation)
            if node.operation is None:
                self._inserts_only.add(name)
            if node.operation is not None and node.primary_key:
                weighted = self._replaced(node, weighted)
            elif self._varies(name):
                weighted = self.cache(weighted)
            self._weighted[name] = weighted
        return self._weighted[name]

    def _varies(self, name: str) -> bool:
        """Returns whether rows of a node may be others when they are computed again."""
        members = {name, *upstream([name], self.plan.nodes)}
        return not all(self.plan.nodes[member].deterministic for member in members)

    def _replaced(self, node: Node, changes: DataFrame) -> DataFrame:
        """Returns the rows that changes add and retract in the table with the primary key."""
        catalyst = self._catalyst
        plan = analyzed_plan(empty_table(changes.drop(WEIGHT), self.session))
        input_ = weighted_leaf(catalyst, changes, plan)
        names = changes.columns
        attributes = scala_items(plan.output())
        key = [attributes[names.index(column)] for column in node.primary_key]
        affected = self.affected_rows(f"{node.name}-rows", [Input(input_, key)], replaces=True)
        rows = affected.changes(0)
        return catalyst.frame(catalyst.project(rows.plan, [*attributes, rows.weight]))

    def affected_rows(
        self, operator: str, inputs: Sequence[Input], *, replaces: bool = False, joins: bool = False
    ) -> AffectedFrame:
        """Returns the rows of the keys that changes affect; with `joins` those of an inner join.

        With `replaces` columns may be added to a state: its rows have nulls in them. Raises
        StateError if the state has other columns.
        """
        schema = schema_of(self._catalyst, inputs)
        key, *values = self._positions(operator, schema, extends=replaces)
        inputs = [
            input_.arranged(self._catalyst, key, columns)
            for input_, columns in zip(inputs, values, strict=True)
        ]
        files = BucketFiles.of(self.directory.path, operator, self.number, self.version)
        expiry = self._expiry(inputs, replaces=replaces)
        task = UpdateState(files, self.number, self.time, expiry, replaces, joins)
        had_state = operator in self.version.chains
        affected = affected_rows(self._catalyst, inputs, task, self.buckets, had_state=had_state)
        self._add(operator, files, affected.step)
        return affected

    @property
    def expires(self) -> bool:
        """Whether rows expire."""
        return self.plan.spec.runtime.updating_ttl is not None

    @property
    def buckets(self) -> int:
        """The number of buckets of keys."""
        return self.version.buckets

    @property
    def is_empty(self) -> bool:
        """Whether no batch was computed before."""
        return self.version.is_new

    def accumulate(self, operator: str, accumulation: Accumulation) -> Weighted:
        """Returns the changes of an aggregate that accumulates.

        Raises StateError if the state has other columns.
        """
        key, *_ = self._positions(operator, accumulation.schema)
        files = BucketFiles.of(self.directory.path, operator, self.number, self.version)
        accumulation = accumulation.arranged(key)
        step = accumulation.affected_rows(files, self.buckets)
        self._add(operator, files, step)
        return accumulation.changes(step.rows, had_state=operator in self.version.chains)

    def repeat(self, operator: str, step: StateStep, changes: DataFrame) -> DataFrame:
        """Computes an operator as in the step of an earlier batch. Returns the affected rows."""
        files = BucketFiles.of(self.directory.path, operator, self.number, self.version)
        self._schemas[operator] = self.version.schemas[operator]
        task = step.task.of_batch(files, self.number, self.time)
        repeated = StateStep.of(changes, task, step.output, step.keys)
        self._add(operator, files, repeated)
        return repeated.rows

    def _add(self, operator: str, files: BucketFiles, step: StateStep) -> None:
        self._operators[operator] = files, step.rows
        self.steps.append((operator, step))

    def _positions(
        self, operator: str, schema: OperatorSchema, *, extends: bool = False
    ) -> list[list[int]]:
        """Returns the positions of an operator's columns in the order of its state.

        With `extends` columns that the state lacks come last.
        """
        stored = self.version.schemas.get(operator, schema)
        stored = self._schemas[operator] = stored.extended(schema) if extends else stored
        positions = stored.positions(schema)
        if positions is None:
            name = max(n for n in self.plan.nodes if operator.startswith(f"{n}-"))
            raise different_state(f'{self.plan.nodes[name].kind} "{name}"', stored, schema)
        return positions

    def _expiry(self, inputs: Sequence[Input], *, replaces: bool) -> Expiry | None:
        """Returns the expiry of the rows of an operator; None if its rows do not expire.

        Rows expire in the first operator that keeps them, and are retracted in all later ones.
        """
        ttl = self.plan.spec.runtime.updating_ttl
        sides = tuple(i for i, each in enumerate(inputs) if replaces or each.changes.inserts_only)
        if ttl is None or not sides:
            return None
        return Expiry(sides, self.time - round(ttl * 1000) if self._is_due else None)

    @property
    def _is_due(self) -> bool:
        """Whether the rows that have expired are removed in this batch."""
        period = max(round((self.plan.spec.runtime.updating_ttl or 0) * 1000) // _REMOVALS, 1)
        return self.time // period > self.version.time // period

    def commit(self) -> StateVersion:
        """Makes the state after the batch the current one, and returns it."""
        chains = {}
        for operator, (files, frame) in self._operators.items():
            compute_all(frame)
            chains[operator] = files.written()
        version = StateVersion(
            self.number, self.version.buckets, chains, self.time, dict(self._schemas)
        )
        self.directory.save(version)
        return version

    @property
    def removes(self) -> bool:
        """Whether rows may expire in this batch."""
        return self.expires and self._is_due

    def skip(self) -> StateVersion:
        """Makes the state before the batch, which has no rows, the current one."""
        version = replace(self.version, batch=self.number)
        self.directory.save(version)
        return version

    def release(self) -> None:
        """Removes the rows of the batch from memory."""
        for rows in self._cached:
            rows.unpersist()
        for _, frame in self._operators.values():
            analyzed_plan(frame).rdd().unpersist(False)


def check_transform(
    node: Node, inputs: Mapping[str, DataFrame], streams: Collection[str], session: SparkSession
) -> bool:
    """Checks that the changes of an updating transform can be computed. Raises PlanError.

    `inputs` are its inputs without operations. Those of `streams` are changes. Returns whether the
    transform may have rows without rows of its inputs.
    """
    leaves = {name: empty_table(inputs[name], session) for name in inputs if name in streams}
    rdds = frozenset(map(rdd_of, leaves.values()))
    template = table_plan(table_of(node, {**inputs, **leaves}, session))
    template = ScalarSubqueries(Catalyst(session), rdds).replace(template)
    check_operators(template, rdds)
    return has_rows_without_input(template, rdds)
