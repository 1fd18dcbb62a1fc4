"""Aggregates that accumulate: a partial row for each group instead of the rows of the group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import any_value, col, lit, pmod
from pyspark.sql.functions import max as maximum
from pyspark.sql.functions import min as minimum
from pyspark.sql.functions import sum as total
from pyspark.sql.types import ByteType, StructField, StructType

from penstock.engine.catalyst.aggregates import replace_calls
from penstock.engine.catalyst.java_trees import children_of
from penstock.engine.catalyst.logical_plans import Catalyst
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, scala_items
from penstock.engine.checkpoints.state_schema import OperatorSchema, is_identity, stable_name
from penstock.engine.updating.accumulators import Buffer, Partials, function_of, is_atomic
from penstock.engine.updating.buckets import partitions_of
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.group_task import UpdateGroups
from penstock.engine.updating.groups import GroupMerge
from penstock.engine.updating.hashing import hashes
from penstock.engine.updating.rows import HASH_2, KEY, WEIGHT
from penstock.engine.updating.steps import StateStep
from penstock.engine.updating.task import ADDED, BUCKET, PHASE, REMOVED
from penstock.engine.updating.weighted import Weighted

_GROUP = "_penstock_group_"
_FUNCTIONS = {"sum": total, "min": minimum, "max": maximum}


@dataclass(frozen=True)
class Accumulation:
    """An aggregate of a plan that accumulates.

    `functions` are its aggregate expressions, each once, with the values of their buffers. `order`
    has the positions of the groups in the order of the state.
    """

    catalyst: Catalyst
    plan: Any
    partials: Partials
    functions: Sequence[tuple[Any, Buffer]]
    order: Sequence[int] = ()

    @classmethod
    def of(cls, catalyst: Catalyst, plan: Any, input_: Weighted) -> Accumulation | None:
        """Returns the accumulation of an aggregate; None if a part of it does not accumulate."""
        keys = scala_items(plan.groupingExpressions())
        if not all(class_name(k) == "AttributeReference" and is_atomic(k.dataType()) for k in keys):
            return None
        partials = Partials(catalyst, input_)
        functions = []
        for aggregate in functions_of(scala_items(plan.aggregateExpressions())):
            buffer = partials.buffer(aggregate)
            if buffer is None:
                return None
            functions.append((aggregate, buffer))
        return cls(catalyst, plan, partials, functions)

    @property
    def keys(self) -> list[Any]:
        """The attributes of the group."""
        keys = scala_items(self.plan.groupingExpressions())
        return [keys[position] for position in self.order] if self.order else keys

    @cached_property
    def schema(self) -> OperatorSchema:
        """The schema of the state: the columns of the group, and the partial columns."""
        types = {f.name: f.dataType.simpleString() for f in self._groups.schema.fields}
        names = (stable_name(str(key.name())) for key in self.keys)
        keys = ((name, types[f"{_GROUP}{index}"]) for index, name in enumerate(names))
        partials = ((f, types[name]) for name, f in self.partials.functions.items())
        return OperatorSchema("groups", (tuple(keys), tuple(partials)))

    def arranged(self, order: Sequence[int]) -> Accumulation:
        """Returns the accumulation with its groups at these positions, in this order."""
        return self if is_identity(order) else replace(self, order=order)

    def affected_rows(self, files: BucketFiles, buckets: int) -> StateStep:
        """Returns the step whose rows are the output of `UpdateGroups`."""
        changes = self._partial_rows(buckets)
        fields = changes.schema.fields
        output = [f for f in fields if f.name not in (BUCKET, KEY, HASH_2, WEIGHT)]
        schema = StructType(
            [StructField(PHASE, ByteType()), *(StructField(f.name, f.dataType) for f in output)]
        )
        partitions = partitions_of(self.catalyst.session, buckets)
        changes = changes.repartition(partitions, BUCKET)
        task = UpdateGroups(files, GroupMerge(self.partials.functions))
        key = tuple(f"{_GROUP}{index}" for index in range(len(self.keys)))
        return StateStep.of(changes, task, schema, [key])

    @cached_property
    def _groups(self) -> DataFrame:
        """The partial row of each group in the changes of the batch."""
        column = self.catalyst.column
        names = [f"{_GROUP}{index}" for index in range(len(self.keys))]
        keys = [column(key).alias(name) for key, name in zip(self.keys, names, strict=True)]
        weight = column(self.partials.input.weight).cast("long")
        partials = [
            _FUNCTIONS[function](value).alias(name)
            for (name, function), (value, _) in zip(
                self.partials.functions.items(), self.partials.columns, strict=True
            )
        ]
        rows = self.catalyst.frame(self.partials.input.plan)
        return rows.groupBy(*keys).agg(total(weight).alias(WEIGHT), *partials)

    def _partial_rows(self, buckets: int) -> DataFrame:
        """Returns the changes of the batch as one partial row for each group, with its hashes."""
        groups, names = self._groups, [f"{_GROUP}{index}" for index in range(len(self.keys))]
        one, other = hashes(
            [col(name) for name in names], [groups.schema[name].dataType for name in names]
        )
        return groups.where(col(WEIGHT).isNotNull()).select(
            pmod(one, lit(buckets)).alias(BUCKET),
            one.alias(KEY),
            other.alias(HASH_2),
            *groups.columns,
        )

    def changes(self, affected: DataFrame, *, had_state: bool) -> Weighted:
        """Returns the results of the groups after the batch, and retracts those before it."""
        if not self.keys:
            affected = self._with_empty(affected, had_state=had_state)
        targets, values = list(self.keys), [col(f"{_GROUP}{i}") for i in range(len(self.keys))]
        for aggregate, buffer in self.functions:
            for attribute in scala_items(function_of(aggregate).aggBufferAttributes()):
                targets.append(attribute)
                values.append(buffer[attribute.name()].cast(attribute.dataType().sql()))
        columns = [value.alias(f"c{index}") for index, value in enumerate(values)]
        plan = analyzed_plan(affected.select(*columns, col(PHASE).cast("int").alias(WEIGHT)))
        *found, weight = scala_items(plan.output())
        plan = self.catalyst.project(plan, [*self.catalyst.rename(found, targets), weight])
        results = [(a, function_of(a).evaluateExpression()) for a, _ in self.functions]
        items = [
            replace_calls(item, results) for item in scala_items(self.plan.aggregateExpressions())
        ]
        plan = self.catalyst.project(plan, [*items, weight])
        return Weighted(plan, weight, adds_only=not had_state)

    def _with_empty(self, affected: DataFrame, *, had_state: bool) -> DataFrame:
        """Returns the partial rows of an aggregate without groups, which always has a result."""
        phases = (ADDED, REMOVED) if had_state else (ADDED,)
        rows = [
            affected.where(col(PHASE) == phase).agg(
                lit(phase).cast("byte").alias(PHASE),
                *(any_value(col(name)).alias(name) for name in affected.columns if name != PHASE),
            )
            for phase in phases
        ]
        return rows[0] if len(rows) == 1 else rows[0].unionAll(rows[1])


def functions_of(expressions: Sequence[Any]) -> list[Any]:
    """Returns the aggregate functions in expressions, each once."""
    found: dict[Any, Any] = {}
    pending = list(expressions)
    while pending:
        expression = pending.pop(0)
        if class_name(expression) == "AggregateExpression":
            found.setdefault(expression.resultId().id(), expression)
        else:
            pending += children_of(expression)
    return list(found.values())
