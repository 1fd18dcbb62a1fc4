"""Rows on the terminal."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.print import PrintSink, PrintSinkConfig
from penstock.sdk import BatchId

SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", tz="UTC"))]
)


def show(*partitions: list[Any], **options: Any) -> None:
    sink = PrintSink(PrintSinkConfig.model_validate(options))
    receipts = []
    for number, names in enumerate(partitions):
        writer = sink.writer(None, BatchId("q", 0), number, SCHEMA)
        at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
        rows = [{"id": i, "name": name, "at": at} for i, name in enumerate(names)]
        payloads = pa.array([json.dumps({"n": n}, ensure_ascii=False).encode() for n in names])
        writer.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA), payloads.cast(pa.binary()))
        receipts.insert(0, json.loads(json.dumps(writer.commit())))
    sink.commit(BatchId("q", 0), receipts)


def test_partitions_are_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    show(["a", "ü😀"], ["c"])
    assert capsys.readouterr().out == '{"n": "a"}\n{"n": "ü😀"}\n{"n": "c"}\n'


def test_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    show(["a", "b", "c"], ["d"], max_records=2, prefix="late ")
    assert capsys.readouterr().out == 'late {"n": "a"}\nlate {"n": "b"}\nlate ... and 2 more rows\n'
    show(["a", "b"], max_records=1)
    assert capsys.readouterr().out.endswith("... and 1 more row\n")


def test_one_of_so_many_rows(capsys: pytest.CaptureFixture[str]) -> None:
    sink = PrintSink(PrintSinkConfig(every=3, max_records=1))
    for number, names in enumerate((["a", "b"], ["c", "d"], [], ["e", "f", "g", "h", "i"])):
        writer = sink.writer(None, BatchId("q", number), 0, SCHEMA)
        rows = pa.RecordBatch.from_pylist([{"name": name} for name in names], schema=SCHEMA)
        writer.write(rows, pa.array([name.encode() for name in names], pa.binary()))
        sink.commit(BatchId("q", number), [writer.commit()])
    assert capsys.readouterr().out == "c\nf\n... and 1 more row\n"


def test_all_rows_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    show(["a"] * 1500, ["b"] * 1500)
    assert capsys.readouterr().out.splitlines() == ['{"n": "a"}'] * 1500 + ['{"n": "b"}'] * 1500


def test_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show([])
    show([], table=True)
    assert capsys.readouterr().out == ""


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    show(["short", "[bold]x[/bold]\ny", None, "z" * 100], table=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["id", "name", "at"]
    assert lines[1].split() == ["0", "short", "2024-01-01", "00:00:00"]
    assert "[bold]x[/bold] y" in lines[2]
    assert lines[1].index("2024") == lines[2].index("2024") == lines[3].index("2024")
    assert len({len(line) for line in lines[1:]}) == 1
