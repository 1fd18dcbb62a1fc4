"""Operators with state: the rows of all keys that a batch affects, before and after the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import lit, monotonically_increasing_id, pmod, struct
from pyspark.sql.types import ByteType, DataType, LongType, StructField, StructType

from penstock.engine.catalyst.logical_plans import Catalyst, named
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, scala_items
from penstock.engine.checkpoints.state_schema import (
    Columns,
    OperatorSchema,
    is_identity,
    stable_name,
)
from penstock.engine.updating.buckets import partitions_of
from penstock.engine.updating.colocation import Key
from penstock.engine.updating.hashing import hashes
from penstock.engine.updating.rows import HASH_1, HASH_2, KEY, ORDER, SIDE, WEIGHT
from penstock.engine.updating.steps import StateStep
from penstock.engine.updating.task import (
    ADDED,
    BUCKET,
    KEPT,
    KEY_2,
    NO_SIDE,
    PHASE,
    REMOVED,
    VALUES,
    UpdateState,
)
from penstock.engine.updating.weighted import Weighted

BEFORE, AFTER = (KEPT, REMOVED), (KEPT, ADDED)
"""The phases of the rows before and after a batch."""


@dataclass(frozen=True)
class Input:
    """An input of an operator: changes, and the expressions of their key."""

    changes: Weighted
    key: Sequence[Any]

    def arranged(self, catalyst: Catalyst, key: Sequence[int], values: Sequence[int]) -> Input:
        """Returns the input with its key and its columns at these positions, in this order."""
        if is_identity(key) and is_identity(values):
            return self
        columns = _values(self.changes)
        attributes = [*(columns[position] for position in values), self.changes.weight]
        plan = catalyst.project(self.changes.plan, attributes)
        changes = replace(self.changes, plan=plan)
        return Input(changes, [self.key[position] for position in key])


def schema_of(catalyst: Catalyst, inputs: Sequence[Input]) -> OperatorSchema:
    """Returns the schema of an operator that keeps the rows of its inputs."""
    keys = zip(*(_columns(catalyst, input_.key) for input_ in inputs), strict=True)
    key = tuple((" = ".join(n for n, _ in pair), " = ".join(t for _, t in pair)) for pair in keys)
    values = (_columns(catalyst, _values(input_.changes)) for input_ in inputs)
    return OperatorSchema("rows", (key, *values))


def _columns(catalyst: Catalyst, expressions: Sequence[Any]) -> Columns:
    types = [type_.simpleString() for type_ in catalyst.types(expressions)]
    return tuple(zip(map(_name, expressions), types, strict=True))


def _name(expression: Any) -> str:
    is_attribute = class_name(expression) == "AttributeReference"
    return stable_name(str(expression.name() if is_attribute else expression.sql()))


def whole_rows(changes: Weighted) -> Input:
    """Returns changes as an input whose key is the whole row."""
    return Input(changes, _values(changes))


@dataclass(frozen=True)
class AffectedFrame:
    """The rows of the keys that a batch affects: the output of `UpdateState`.

    With `expires` rows are also removed because of their age. Without `had_state` no rows were
    there before the batch.
    """

    catalyst: Catalyst
    step: StateStep
    inputs: Sequence[Input]
    expires: bool = False
    had_state: bool = True

    def rows(self, side: int, phases: Sequence[int]) -> Any:
        """Returns the plan of the rows of an input in these phases, without a weight."""
        plan, attributes = self._side(side, phases)
        return self.catalyst.project(plan, attributes)

    def changes(self, side: int) -> Weighted:
        """Returns the rows of an input that the batch adds or retracts."""
        plan, attributes = self._side(side, (ADDED, REMOVED))
        weight = scala_items(plan.output())[-1]
        plan = self.catalyst.project(plan, [*attributes, weight])
        changes = self.inputs[side].changes
        inserts_only = changes.inserts_only and not self.expires
        adds_only = not self.had_state or (changes.adds_only and not self.expires)
        return Weighted(plan, weight, inserts_only, adds_only)

    def _side(self, side: int, phases: Sequence[int]) -> tuple[Any, list[Any]]:
        """Returns a plan of rows whose last column is the weight, and their values.

        The values have the IDs of the input.
        """
        rows = self.step.rows
        chosen = (rows[SIDE] == side) & rows[PHASE].isin(*phases)
        weight = named(PHASE).cast("int").alias(WEIGHT)
        plan = analyzed_plan(rows.where(chosen).select("*", weight))
        values = scala_items(plan.output())[rows.columns.index(f"{VALUES}_{side}")]
        targets = _values(self.inputs[side].changes)
        none = self.catalyst.java.scala.Option.empty()
        fields = [
            self.catalyst.expressions.GetStructField(values, index, none)
            for index in range(len(targets))
        ]
        return plan, self.catalyst.rename(fields, targets)


def affected_rows(
    catalyst: Catalyst,
    inputs: Sequence[Input],
    task: UpdateState,
    buckets: int,
    *,
    had_state: bool,
) -> AffectedFrame:
    """Returns the rows of all keys that the changes of the inputs affect.

    The computation of the frame writes the state after the batch. The inputs have equal keys in one
    bucket.
    """
    value_types = [catalyst.types(_values(input_.changes)) for input_ in inputs]
    types = list(map(_struct_of, value_types))
    parts = [
        _changes(catalyst, inputs, value_types, side, buckets, replaces=task.replaces)
        for side in range(len(inputs))
    ]
    if task.removes:
        parts.append(_names_of_buckets(catalyst, buckets, parts[0].schema))
    changes = reduce(DataFrame.unionAll, parts)
    partitions = partitions_of(catalyst.session, buckets)
    changes = changes.repartition(partitions, BUCKET)
    output = StructType(
        [
            StructField(PHASE, ByteType(), False),
            StructField(SIDE, LongType(), False),
            *(StructField(f"{VALUES}_{side}", type_) for side, type_ in enumerate(types)),
        ]
    )
    keys = [_colocated_key(input_, side) for side, input_ in enumerate(inputs)]
    step = StateStep.of(changes, task, output, keys)
    return AffectedFrame(catalyst, step, inputs, task.expiry is not None, had_state)


def _values(changes: Weighted) -> list[Any]:
    """Returns the attributes of changes without their weight."""
    assert changes.weight is not None
    weight = changes.weight.exprId()
    return [a for a in scala_items(changes.plan.output()) if not a.exprId().equals(weight)]


def _colocated_key(input_: Input, side: int) -> Key:
    """Returns the key of an input in the output of `UpdateState`; () if it is no columns of it."""
    ids = [int(attribute.exprId().id()) for attribute in _values(input_.changes)]
    if not all(class_name(part) == "AttributeReference" for part in input_.key):
        return ()
    places = [ids.index(int(part.exprId().id())) for part in input_.key]
    return tuple(f"{VALUES}_{side}.c{place}" for place in places)


def _struct_of(types: Sequence[DataType]) -> StructType:
    fields = [StructField(f"c{i}", type_) for i, type_ in enumerate(types)]
    return StructType(fields or [StructField("c0", ByteType())])


def _changes(
    catalyst: Catalyst,
    inputs: Sequence[Input],
    types: Sequence[Sequence[DataType]],
    side: int,
    buckets: int,
    *,
    replaces: bool,
) -> DataFrame:
    """Returns the changes of one input as rows of `engine.updating.rows`."""
    input_ = inputs[side]
    values = [catalyst.column(attribute) for attribute in _values(input_.changes)]
    key = [catalyst.column(expression) for expression in input_.key]
    key_hash, other_key_hash = hashes(key, catalyst.types(input_.key))
    first, second = hashes([lit(side), *values], [LongType(), *types[side]])
    packed = [value.alias(f"c{index}") for index, value in enumerate(values)]
    columns = [
        pmod(key_hash, lit(buckets)).alias(BUCKET),
        key_hash.alias(KEY),
        *([other_key_hash.alias(KEY_2)] if replaces else []),
        first.alias(HASH_1),
        second.alias(HASH_2),
        lit(side).cast("long").alias(SIDE),
        catalyst.column(input_.changes.weight).cast("long").alias(WEIGHT),
        *(
            _packed(packed, type_, index == side, index)
            for index, type_ in enumerate(map(_struct_of, types))
        ),
        monotonically_increasing_id().alias(ORDER),
    ]
    return catalyst.frame(input_.changes.plan).select(*columns)


def _names_of_buckets(catalyst: Catalyst, buckets: int, columns: StructType) -> DataFrame:
    """Returns a row without a change for each bucket."""
    known = {BUCKET: named("id"), SIDE: lit(NO_SIDE)}
    rows = catalyst.session.range(buckets)
    return rows.select(
        *(
            known.get(field.name, lit(0 if field.dataType == LongType() else None))
            .cast(field.dataType)
            .alias(field.name)
            for field in columns
        )
    )


def _packed(values: Sequence[Column], type_: StructType, is_own: bool, side: int) -> Column:
    empty = [lit(None).cast("byte").alias("c0")]
    value = struct(*(values or empty)) if is_own else lit(None)
    return value.cast(type_).alias(f"{VALUES}_{side}")
