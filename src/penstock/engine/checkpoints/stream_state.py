"""Schemas of the state that Spark keeps for a query, recorded in its checkpoint.

Spark compares the types of the columns of a state with those of the query, but not their names: two
columns of one type in another order would exchange their values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from penstock.core.errors import StateError
from penstock.core.files.durable import replace_durably
from penstock.engine.catalyst.java_trees import children_of, is_stream
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, scala_items
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.checkpoints.state_schema import (
    Columns,
    OperatorSchema,
    different_state,
    stable_name,
)
from penstock.plan.model import Query

_RECORD = "penstock-operators.json"
_EXACT_SUMS = "penstock-exact-sums"
_TIMED_WINDOWS = "penstock-timed-windows"


def check_stream_state(query: Query, stream: DataFrame, checkpoint: Path) -> None:
    """Raises StateError if the state in a checkpoint has other columns than a stream."""
    stored = _read(checkpoint)
    if stored is None or OffsetLog(checkpoint).planned is None:
        return
    for (name, known), (_, current) in zip(stored.items(), _schemas(stream).items(), strict=False):
        if known != current:
            kind = name.partition("-")[0]
            raise different_state(f'the {kind} in query "{query.name}"', known, current)


def has_same_joins(one: DataFrame, other: DataFrame) -> bool:
    """Returns whether the joins of two streams have state of the same columns."""
    states = ([s for s in _schemas(each).values() if s.kind == "join"] for each in (one, other))
    return next(states) == next(states)


def has_exact_sums(checkpoint: Path) -> bool:
    """Returns whether the state in a checkpoint has exact sums, as a new state does."""
    return (checkpoint / _EXACT_SUMS).exists() or OffsetLog(checkpoint).planned is None


def has_timed_windows(checkpoint: Path | None) -> bool:
    """Returns whether a query has no rows without a time in windows of the calendar.

    An earlier version had them. A query that it has started keeps them, as its state does.
    """
    if checkpoint is None or (checkpoint / _TIMED_WINDOWS).exists():
        return True
    return OffsetLog(checkpoint).planned is None


def record_timed_windows(checkpoint: Path) -> None:
    """Records before the first batch of a query that its windows have no rows without a time."""
    if OffsetLog(checkpoint).planned is None:
        replace_durably(checkpoint / _TIMED_WINDOWS, "")


def record_stream_state(stream: DataFrame, checkpoint: Path) -> None:
    """Records the columns of a state before its first batch. Later ones are the same."""
    if OffsetLog(checkpoint).planned is None:
        replace_durably(checkpoint / _EXACT_SUMS, "")
    if _read(checkpoint) is None or OffsetLog(checkpoint).planned is None:
        schemas = {name: schema.as_dict() for name, schema in _schemas(stream).items()}
        replace_durably(checkpoint / _RECORD, json.dumps(schemas))


def _read(checkpoint: Path) -> dict[str, OperatorSchema] | None:
    path = checkpoint / _RECORD
    try:
        stored = json.loads(path.read_text("utf-8"))
        return {name: OperatorSchema.parse(schema) for name, schema in stored.items()}
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StateError(
            f"{path} is damaged",
            code="corrupt-state",
            detail=str(error),
            hint="Restore the file from a backup, or reset the state with --fresh.",
        ) from error


def _schemas(stream: DataFrame) -> dict[str, OperatorSchema]:
    """Returns the schema of each stateful operator, as Spark's optimizer leaves it."""
    session: Any = stream.sparkSession._jsparkSession
    plan = session.sessionState().optimizer().execute(analyzed_plan(stream))
    found = enumerate(_operators(plan), 1)
    return {f"{schema.kind}-{number}": schema for number, schema in found}


def _operators(plan: Any) -> Iterator[OperatorSchema]:
    if not is_stream(plan):
        return
    kind = class_name(plan)
    children = children_of(plan)
    if kind == "Aggregate":
        keys = _columns(scala_items(plan.groupingExpressions()))
        yield OperatorSchema("aggregation", (keys, _columns(scala_items(plan.output()))))
    elif kind.startswith("Deduplicate"):
        yield OperatorSchema("deduplication", (_columns(scala_items(plan.keys())),))
    elif kind == "Join" and all(map(is_stream, children)):
        sides = (_columns(scala_items(child.output())) for child in children)
        yield OperatorSchema("join", tuple(sides))
    for child in children:
        yield from _operators(child)


def _columns(expressions: list[Any]) -> Columns:
    return tuple((_name(each), str(each.dataType().simpleString())) for each in expressions)


def _name(expression: Any) -> str:
    """Returns the name of an attribute. Other expressions are those of the query."""
    is_attribute = class_name(expression) == "AttributeReference"
    return stable_name(str(expression.name())) if is_attribute else ""
