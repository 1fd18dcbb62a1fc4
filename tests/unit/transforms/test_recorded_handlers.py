"""The recorded cases of stream-data-processor as streams that are divided at random."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import OptionError
from penstock.handlers.errors import HandlerError
from recorded_handlers.cases import (
    BATCH,
    CASE,
    RecordedCase,
    expected_rows,
    recorded_cases,
    stream_schema,
)
from recorded_handlers.streams import HandlerStream, Rows, divide

CASES = [*recorded_cases()]
INVALID = {
    "min string", "missing col", "int time col", "float32 mean", "group missing",
    "join missing key", "join type conflict", "no unit meta", "string col", "time missing but ok",
}  # fmt: skip
"""The cases whose handlers do not fit their columns: errors before the run."""


def comparable(rows: Rows) -> list[dict[str, Any]]:
    """Returns rows without nulls and the columns of the stream."""
    return [
        {n: round(v, 9) if isinstance(v, float) else v for n, v in row.items()
         if v is not None and n not in (CASE, BATCH)}
        for row in rows
    ]  # fmt: skip


def by_content(rows: Rows) -> list[dict[str, Any]]:
    """Returns rows in an order of their values."""
    return sorted(rows, key=lambda row: str(sorted(row.items())))


def by_options() -> list[list[RecordedCase]]:
    """Returns the cases of equal handlers and columns together, without those with errors."""
    groups: dict[str, list[RecordedCase]] = defaultdict(list)
    for case in CASES:
        if case.title not in INVALID and not case.is_error:
            key = json.dumps(case.options), str(stream_schema([case]))
            groups[str(key)].append(case)
    return [*groups.values()]


def interleaved(cases: list[RecordedCase], rng: random.Random) -> pa.RecordBatch:
    """Returns the rows of all cases in one order, which keeps that of each case."""
    schema = stream_schema(cases)
    queues = [case.rows(schema).to_pylist() for case in cases]
    owners = [number for number, queue in enumerate(queues) for _ in queue]
    rng.shuffle(owners)
    return pa.RecordBatch.from_pylist([queues[owner].pop(0) for owner in owners], schema)


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", range(3))
def test_cases_in_one_stream(seed: int) -> None:
    rng, count, rejected = random.Random(seed), 0, []
    for cases in by_options():
        rows = interleaved(cases, rng)
        stream = HandlerStream(cases[0].options, rows.schema)
        found = [row for batch in divide(rows, rng) for row in stream.batch(batch)]
        for case in cases:
            of_case = [row for row in found if row[CASE] == case.title]
            actual, expected = comparable(of_case), comparable(expected_rows(case))
            if len(case.handlers) > 1:
                # Handlers pass the windows of a call together, and a stream one by one.
                actual, expected = by_content(actual), by_content(expected)
            assert actual == expected, case.title
            count += bool(of_case)
        rejected += stream.rejected
    assert count > 35
    assert {code for _, code in rejected} == {"null-time"}


@pytest.mark.parametrize("case", [c for c in CASES if c.title in INVALID], ids=lambda c: c.title)
def test_cases_that_are_errors(case: RecordedCase) -> None:
    with pytest.raises((OptionError, HandlerError, pa.ArrowTypeError)):
        HandlerStream(case.options, stream_schema([case]))
