"""Clients of sinks in the process that writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.engine.batch_observer import Written
from penstock.engine.sinks.sink import SinkTask, write
from penstock.engine.sinks.sink_preparation import prepare
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.formats.json.plain import JsonConfig, PlainJson
from penstock.formats.text import Text, TextConfig
from penstock.plan.node import Node
from penstock.sdk import (
    BatchId,
    Capability,
    Config,
    Context,
    Failure,
    Operation,
    PlanError,
    Rejected,
    SchemaChanges,
    Sink,
    Transient,
    Writer,
)  # fmt: skip
from penstock.spec.node_models import SinkSpec

ROWS = pa.RecordBatch.from_pydict({"id": [1]})
clients: list[FragileClient] = []


class FragileClient:
    def __init__(self) -> None:
        self.broken, self.closed = False, threading.Event()
        self.aborted = 0

    def close(self) -> None:
        self.closed.set()
        raise OSError("the other side has left already")


class FragileWriter(Writer):
    def __init__(self, client: FragileClient) -> None:
        self._client = client

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> list[Any]:
        if self._client.broken:
            raise Transient("made up")
        return []

    def commit(self) -> dict[str, Any]:
        return {}

    def abort(self) -> None:
        self._client.aborted += 1


class FragileSink(Sink[Config]):
    """A sink whose client may be broken."""

    def open(self) -> FragileClient:
        clients.append(FragileClient())
        return clients[-1]

    def writer(
        self, client: FragileClient, batch: BatchId, partition: int, schema: pa.Schema
    ) -> FragileWriter:
        return FragileWriter(client)


@pytest.fixture
def task() -> Iterator[SinkTask]:
    clients.clear()
    task = SinkTask.of(FragileSink(Config()), Spool("made_up", "query", "sink", "sink"))
    yield task
    task.discard_client()


def written(task: SinkTask, number: int) -> None:
    write(task, BatchId("query", number), 0, iter([ROWS]))


def test_a_client_is_kept_between_batches(task: SinkTask) -> None:
    written(task, 0)
    written(task, 1)
    (client,) = clients
    assert not client.closed.is_set()


def test_a_client_that_failed_is_closed_and_another_made(task: SinkTask) -> None:
    written(task, 0)
    clients[0].broken = True
    with pytest.raises(Transient, match="made up"):
        written(task, 1)
    assert clients[0].aborted == 1 and clients[0].closed.wait(30)
    written(task, 1)
    assert len(clients) == 2 and not clients[1].closed.is_set()


class ChangeWriter(Writer):
    """Rejects the rows named "rejected"."""

    written: ClassVar[list[tuple[dict[str, Any], str | None]]] = []

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: Any = None
    ) -> list[Failure]:
        values = operations.to_pylist() if operations is not None else [None] * rows.num_rows
        self.written.extend(zip(rows.to_pylist(), values, strict=True))
        names = rows.column("name").to_pylist()
        error = Rejected("rejected")
        return [Failure(at, error) for at, name in enumerate(names) if name == "rejected"]

    def commit(self) -> dict[str, Any]:
        return {}


class ChangeSink(Sink[Config]):
    """Applies changes to a target with a fixed column."""

    target: pa.Schema | None = None

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        assert schema.names == ["name"]
        return ChangeWriter()

    def target_schema(self, columns: pa.Schema) -> pa.Schema | None:
        return self.target


class PayloadWriter(Writer):
    """Rejects the name `long`."""

    payloads: ClassVar[list[bytes | None]] = []

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> list[Failure]:
        self.payloads.extend(payloads.to_pylist())
        names = rows.column("name").to_pylist()
        return [Failure(i, Rejected("no")) for i, name in enumerate(names) if name == "long"]

    def commit(self) -> dict[str, Any]:
        return {}


class PayloadSink(Sink[Config]):
    capabilities = Capability.BYTES

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return PayloadWriter()


def test_a_receipt_counts_the_bytes_of_written_payloads(tmp_path: Path) -> None:
    sink = PayloadSink(Config())
    sink.format = PlainJson.create(JsonConfig(), Context())
    task = SinkTask.of(sink, Spool("made_up", "query", "out", "sink", directory=str(tmp_path)))
    batches = [pa.RecordBatch.from_pydict({"name": names}) for names in (["a", "long"], ["bc"])]
    receipt = write(task, BatchId("query", 0), 0, iter(batches))
    assert receipt == {"rows": 2, "bad": 1, "bytes": len('{"name":"a"}{"name":"bc"}')}
    assert Written.of([receipt, {"rows": 1, "bad": 0}]) == Written(3, 1, receipt["bytes"])
    assert Written.of([{"rows": 1, "bad": 0}]) == Written(1, 0, None)


def test_deletes_without_a_payload_keep_their_place(tmp_path: Path) -> None:
    PayloadWriter.payloads.clear()
    sink = PayloadSink(Config())
    sink.format = Text(TextConfig())
    spool = Spool("p", "q", "out", "sink", directory=str(tmp_path))
    rows = pa.RecordBatch.from_pydict(
        {"op": ["d", "i", "i", "d", "u"], "name": ["x", None, "a", "y", "b"]}
    )
    receipt = write(SinkTask.of(sink, spool, operation="op"), BatchId("q", 0), 0, iter([rows]))
    assert receipt is not None and (receipt["rows"], receipt["bad"]) == (4, 1)
    assert PayloadWriter.payloads == [None, b"a", None, b"b"]
    (letter,) = pa.ipc.open_file(next(tmp_path.rglob("*.arrow"))).read_all().to_pylist()
    assert json.loads(letter["payload"]) == {"op": "i", "name": None}


NOT_UTF8 = pa.array([b"a", b"\xff", None, "\u00fc".encode(), b"b\xc3"], pa.binary())


@pytest.mark.parametrize("nested", [False, True])
def test_text_that_is_not_utf8_is_a_dead_letter(tmp_path: Path, nested: bool) -> None:
    ChangeWriter.written.clear()
    text = NOT_UTF8.view(pa.string())
    column = pa.StructArray.from_arrays([text], ["t"]) if nested else text
    rows = pa.RecordBatch.from_arrays([column], ["name"])
    task = SinkTask.of(
        ChangeSink(Config()), Spool("p", "q", "out", "sink", directory=str(tmp_path))
    )
    assert write(task, BatchId("q", 0), 0, iter([rows])) == {"rows": 3, "bad": 2}
    values = [row["name"] for row, _ in ChangeWriter.written]
    assert [value["t"] if nested else value for value in values] == ["a", None, "ü"]
    dead_letters = pa.ipc.open_file(next(tmp_path.rglob("*.arrow"))).read_all().to_pylist()
    hint = "Keep the value as BINARY, or set invalid_utf8: replace of the sink."
    assert [(letter["code"], letter["message"]) for letter in dead_letters] == [
        ("not-utf8", f'column "name" is not UTF-8: byte 0xff at byte 1. {hint}'),
        ("not-utf8", f'column "name" is not UTF-8: byte 0xc3 at byte 2. {hint}'),
    ]
    payload = b'{"name": {"t": "b\\udcc3"}}' if nested else b'{"name": "b\\udcc3"}'
    assert dead_letters[1]["payload"] == payload


def test_text_that_is_not_utf8_is_replaced_on_request() -> None:
    ChangeWriter.written.clear()
    rows = pa.RecordBatch.from_arrays([NOT_UTF8.view(pa.string())], ["name"])
    task = SinkTask.of(ChangeSink(Config()), Spool("p", "q", "out", "sink"), invalid_utf8="replace")
    assert write(task, BatchId("q", 0), 0, iter([rows])) == {"rows": 5, "bad": 0}
    assert [row["name"] for row, _ in ChangeWriter.written] == ["a", "�", None, "ü", "b�"]


def test_operations_are_beside_the_rows(tmp_path: Path) -> None:
    ChangeWriter.written.clear()
    spool = Spool("made_up", "query", "out", "sink", directory=str(tmp_path))
    task = SinkTask.of(ChangeSink(Config()), spool, operation="op")
    rows = pa.RecordBatch.from_pydict(
        {"op": ["i", "?", None, "d", "u"], "name": ["a", "b", "c", "rejected", "e"]}
    )
    receipt = write(task, BatchId("query", 0), 0, iter([rows]))
    assert receipt == {"rows": 2, "bad": 3}
    assert ChangeWriter.written == [
        ({"name": "a"}, Operation.INSERT),
        ({"name": "rejected"}, Operation.DELETE),
        ({"name": "e"}, Operation.UPDATE),
    ]
    dead_letters = pa.ipc.open_file(next(tmp_path.rglob("*.arrow"))).read_all()
    assert dead_letters.column("code").to_pylist() == [
        "unknown-operation",
        "unknown-operation",
        "rejected",
    ]
    assert json.loads(dead_letters.column("payload")[2].as_py()) == {"op": "d", "name": "rejected"}


def test_rows_without_the_operation_column_are_inserts() -> None:
    ChangeWriter.written.clear()
    task = SinkTask.of(ChangeSink(Config()), Spool("p", "q", "out", "sink"), operation="op")
    write(task, BatchId("query", 0), 0, iter([pa.RecordBatch.from_pydict({"name": ["a"]})]))
    assert ChangeWriter.written == [({"name": "a"}, None)]


def test_a_target_that_cannot_hold_the_rows_is_an_error() -> None:
    sink = ChangeSink(Config())
    spec = SinkSpec.model_validate({"type": "changes", "from": "rows"})
    node = Node("out", "sink", sink, spec, ("rows",), None)
    columns = pa.schema([("name", pa.string())])
    prepare(node, columns)
    for target in (pa.schema([("name", pa.int64())]), pa.schema([("id", pa.int64())])):
        sink.target = target
        with pytest.raises(PlanError) as caught:
            prepare(node, columns)
        assert caught.value.code == "target-schema" and '"name"' in caught.value.message
        assert caught.value.message.startswith('sink "out"')


def test_a_sink_changes_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, seen = ChangeSink(Config()), []
    sink.target = pa.schema([("id", pa.int32())])
    spec = SinkSpec.model_validate({"type": "changes", "from": "rows"})
    monkeypatch.setattr(sink, "change_schema", seen.append)
    columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
    prepare(Node("out", "sink", sink, spec, ("rows",), None), columns)
    (changes,) = seen
    assert isinstance(changes, SchemaChanges)
    assert [each.name for each in changes.missing] == ["name"]
    assert [each.name for each in changes.widened] == ["id"]
