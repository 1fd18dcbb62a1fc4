"""The contract fails for connectors that are broken, each in one way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.connectors import memory
from penstock.connectors.memory import MemorySink, MemorySource
from penstock.connectors.memory.sink import MemoryWriter, committed
from penstock.sdk import (
    BatchId,
    Capability,
    Config,
    Failure,
    Offset,
    Read,
    Receipt,
    Sink,
    Writer,
)
from penstock.testing.contract import SinkContract, SourceContract

pytest_plugins = ["pytester"]

NOT_SHIPPED = "not spark", "not docstring and not lazily and not overwriting"
"""The contract's tests without Spark, for components that do not overwrite and are not shipped."""


class Source(MemorySource):
    """A memory source; its subclasses are broken."""


class GoesBack(Source):
    def latest_offset(self, start: Offset) -> Offset:
        return {"rows": self._total - (1 if start["rows"] else 0)}


class CountsTooMuch(Source):
    def lag(self, current: Offset, latest: Offset) -> int:
        return super().lag(current, latest) * 2


class CountsBackwards(Source):
    def lag(self, current: Offset, latest: Offset) -> int:
        return -super().lag(current, latest)


class LosesOffsetTypes(Source):
    def initial_offset(self) -> Offset:
        return {"rows": 0, "at": (1, 2)}


class LeavesGaps(Source):
    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[int, int]]:
        return [(a + 1 if a else a, b) for a, b in super().partitions(start, end)]


class Repeats(Source):
    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[int, int]]:
        return [(max(0, a - 1), b) for a, b in super().partitions(start, end)]


class CorruptsAColumn(Source):
    def read(self, partition: tuple[int, int], read: Read) -> Iterator[pa.RecordBatch]:
        for rows in super().read(partition, read):
            yield shouting(rows)


class IsNotRepeatable(Source):
    reads = 0

    def read(self, partition: tuple[int, int], read: Read) -> Iterator[pa.RecordBatch]:
        IsNotRepeatable.reads += 1
        for rows in super().read(partition, read):
            yield rows.slice(0, 1) if IsNotRepeatable.reads > 1 else rows


class ReversesWhatItReads(Source):
    def read(self, partition: tuple[int, int], read: Read) -> Iterator[pa.RecordBatch]:
        for rows in super().read(partition, read):
            yield rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))


class IgnoresTheLimit(Source):
    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        return end


class KeepingSink(MemorySink):
    """A memory sink; its subclasses are broken."""


class CorruptsWhatItWrites(KeepingSink):
    def writer(self, client: None, batch: BatchId, partition: int, schema: pa.Schema) -> Any:
        return Shouting(partition, schema)


class FinishesTwice(KeepingSink):
    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        committed.get(self.name, {}).pop(batch, None)
        number = len(committed.get(self.name, {}))
        super().commit(BatchId(f"{batch.query} {number}", batch.number), receipts)
        committed.setdefault(self.name, {})[BatchId(str(number), -1)] = pa.table({})


class CorruptsRepeats(KeepingSink):
    """It does not promise `exactly once`, and a repeated row has another value."""

    capabilities = frozenset({Capability.ROWS})

    def writer(self, client: None, batch: BatchId, partition: int, schema: pa.Schema) -> Any:
        repeated = batch in committed.get(self.name, {})
        return (Shouting if repeated else MemoryWriter)(partition, schema)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        repeated = len(committed.get(self.name, {}))
        committed.get(self.name, {})[BatchId(batch.query, -repeated)] = pa.table({})
        known = batch in committed.get(self.name, {})
        super().commit(BatchId(f"{batch.query} again", batch.number) if known else batch, receipts)


class ReversesWhatItWrites(KeepingSink):
    def writer(self, client: None, batch: BatchId, partition: int, schema: pa.Schema) -> Any:
        return Reversing(partition, schema)


class ForgetsTheQuery(KeepingSink):
    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        super().commit(BatchId("", batch.number), receipts)


class ShowsTooEarly(KeepingSink):
    def writer(self, client: None, batch: BatchId, partition: int, schema: pa.Schema) -> Any:
        return Showing(self.name, schema)


class Shouting(MemoryWriter):
    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        return super().write(shouting(rows), payloads)


class Reversing(MemoryWriter):
    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        return super().write(rows.take(pa.array(range(rows.num_rows - 1, -1, -1))), payloads)


class Showing(MemoryWriter):
    def __init__(self, name: str, schema: pa.Schema) -> None:
        super().__init__(0, schema)
        self.name = name

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        if self.name in memory.tables:
            shown = memory.tables[self.name]
            memory.tables[self.name] = pa.concat_tables([shown, pa.Table.from_batches([rows])])
        return super().write(rows, payloads)


class PayloadSink(Sink[Config]):
    """A sink of payloads; its subclasses are broken."""

    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    acknowledges = "its payloads are in the list"
    payloads: list[bytes] = []

    def writer(self, client: None, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return PayloadWriter(self)

    def carried(self, payload: bytes) -> bytes:
        return payload


class PayloadWriter(Writer):
    def __init__(self, sink: PayloadSink) -> None:
        self.sink = sink

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        PayloadSink.payloads += [self.sink.carried(each) for each in payloads.to_pylist()]
        return ()

    def commit(self) -> Receipt:
        return {}


class EndsAtZero(PayloadSink):
    def carried(self, payload: bytes) -> bytes:
        return payload.split(b"\0")[0] if payload else payload


class TakesTextOnly(PayloadSink):
    def carried(self, payload: bytes) -> bytes:
        return payload.decode(errors="replace").encode()


class CutsLargePayloads(PayloadSink):
    def carried(self, payload: bytes) -> bytes:
        return payload[:65536]


def shouting(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with a column of other values."""
    return rows.set_column(1, "name", pc.utf8_upper(rows.column("name")))


class SourceCase(SourceContract):
    component = Source
    batch_limit = {"batches": 3}

    @pytest.fixture
    def options(self) -> dict[str, Any]:
        return {"rows": []}

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        return lambda rows, schema: options["rows"].extend(rows)


class SinkCase(SinkContract):
    component = KeepingSink

    @pytest.fixture
    def options(self) -> Any:
        memory.clear()
        yield {"name": "kept"}
        memory.clear()

    @pytest.fixture
    def rows(self) -> Any:
        return lambda schema: memory.tables["kept"].to_pylist()


class PayloadCase(SinkContract):
    component = PayloadSink

    @pytest.fixture
    def rows(self) -> Any:
        PayloadSink.payloads.clear()
        return lambda schema: self.decode(PayloadSink.payloads, schema)


OFFSETS = "test_offsets_and_lag_advance_with_rows"
BROKEN: dict[type[Any], tuple[type[Any], str]] = {
    GoesBack: (SourceCase, OFFSETS),
    CountsTooMuch: (SourceCase, OFFSETS),
    CountsBackwards: (SourceCase, OFFSETS),
    LosesOffsetTypes: (SourceCase, "test_offsets_are_json_and_never_decrease"),
    LeavesGaps: (SourceCase, "test_resume_without_gap_or_duplicate"),
    Repeats: (SourceCase, "test_resume_without_gap_or_duplicate"),
    CorruptsAColumn: (SourceCase, "test_all_rows_are_read"),
    IsNotRepeatable: (SourceCase, "test_range_is_replayable"),
    ReversesWhatItReads: (SourceCase, "test_order_is_preserved"),
    IgnoresTheLimit: (SourceCase, "test_batch_limit"),
    CorruptsWhatItWrites: (SinkCase, "test_all_rows_are_written"),
    FinishesTwice: (SinkCase, "test_repeated_commit"),
    CorruptsRepeats: (SinkCase, "test_repeated_batch"),
    ReversesWhatItWrites: (SinkCase, "test_order_is_preserved"),
    ForgetsTheQuery: (SinkCase, "test_new_query_restarts_batch_numbers"),
    ShowsTooEarly: (SinkCase, "test_uncommitted_rows_are_invisible"),
    EndsAtZero: (PayloadCase, "test_opaque_payloads"),
    TakesTextOnly: (PayloadCase, "test_opaque_payloads"),
    CutsLargePayloads: (PayloadCase, "test_opaque_payloads"),
}


@pytest.mark.slow
def test_a_broken_connector_fails(pytester: pytest.Pytester) -> None:
    classes = [
        f"class Test{broken.__name__}({case.__name__}):\n    component = {broken.__name__}\n"
        for broken, (case, _) in BROKEN.items()
    ]
    path = written(pytester, *classes)
    tests = [f"{path}::Test{broken.__name__}::{test}" for broken, (_, test) in BROKEN.items()]
    passed, skipped, failed = pytester.inline_run(*tests).listoutcomes()
    assert not passed, f"not noticed: {[report.nodeid for report in passed]}"
    assert not skipped and len(failed) == len(BROKEN)
    assert all("AssertionError" in str(report.longrepr) for report in failed)


@pytest.mark.slow
def test_the_same_connectors_unbroken_pass(pytester: pytest.Pytester) -> None:
    cases = (SourceCase, SinkCase, PayloadCase)
    classes = [f"class Test{case.__name__}({case.__name__}): pass\n" for case in cases]
    path = written(pytester, *classes)
    marked, named = NOT_SHIPPED
    passed, skipped, failed = pytester.inline_run(path, "-m", marked, "-k", named).listoutcomes()
    assert not failed, [report.longreprtext for report in failed]
    assert not skipped and len(passed) > 40


def written(pytester: pytest.Pytester, *classes: str) -> Path:
    """A file of tests with these classes."""
    names = sorted({"SourceCase", "SinkCase", "PayloadCase", *(e.__name__ for e in BROKEN)})
    text = f"from {__name__} import {', '.join(names)}\n\n" + "\n".join(classes)
    return pytester.makepyfile(test_broken=text)
