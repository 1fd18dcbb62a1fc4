"""Writing to NATS: subjects, headers, message IDs, keys, and rejected messages."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from writing import written

from penstock.connectors.nats import NatsSink
from penstock.core.errors import PlanError
from penstock.sdk import BatchId, Permanent
from servers.gate import Gate
from servers.nats import Nats

FIRST = BatchId("query-1", 0)


def make_sink(nats: Nats, primary: tuple[str, ...] = (), **options: Any) -> NatsSink:
    sink = NatsSink(NatsSink.config_type.model_validate({**nats.login, **options}))
    if primary:
        sink.mode, sink.primary_key = "upsert", primary
    return sink


def payload_texts(nats: Nats, stream: str) -> list[str]:
    return [message.data.decode() for message in nats.messages(stream)]


@pytest.mark.parametrize("confirmed", [True, False])
def test_subjects_and_headers_from_columns(nats: Nats, confirmed: bool) -> None:
    stream = nats.new_stream()
    options = {"stream": stream} if confirmed else {}
    sink = make_sink(
        nats, subject=f"{stream}.{{to}}", headers={"User": "{user}", "Kind": "example"}, **options
    )
    rows = [
        {"text": "1", "to": "a.b", "user": "ann"},
        {"text": "2", "to": "c d", "user": "bob"},
        {"text": "3", "to": None, "user": "bob"},
        {"text": "4", "to": "e", "user": None},
    ]
    failures = written(sink, rows)
    assert [(failure.index, failure.error.code) for failure in failures] == [
        (1, "invalid-subject"),
        (2, "invalid-subject"),
    ]
    first, second = nats.messages(stream)
    assert first.subject == f"{stream}.a.b" and second.subject == f"{stream}.e"
    assert (first.headers["User"], first.headers["Kind"]) == ("ann", "example")
    assert "User" not in second.headers


def test_a_slow_connection(nats: Nats) -> None:
    """A PONG that overtakes the messages would be too early."""
    stream = nats.new_stream()
    gate = Gate(nats.port, portion=len("PING\r\n"), rest=0.01)
    sink = make_sink(nats, url=f"nats://127.0.0.1:{gate.port}", subject=f"{stream}.a")
    client = sink.open()
    rows = pa.RecordBatch.from_pylist([{"text": f"{at}"} for at in range(5)])
    writer = sink.writer(client, FIRST, 0, rows.schema)
    assert not writer.write(rows, rows.column("text").cast(pa.binary()))
    assert payload_texts(nats, stream) == [*"01234"]
    gate.stop()
    client.close()


def test_a_batch_that_is_repeated_is_dropped(nats: Nats) -> None:
    stream = nats.new_stream()
    sink = make_sink(nats, subject=f"{stream}.{{to}}", stream=stream)
    rows = [{"text": "1", "to": "a"}, {"text": "1", "to": "a"}, {"text": "2", "to": "a"}]
    written(sink, rows[:2])
    assert payload_texts(nats, stream) == ["1", "1"]
    written(sink, [rows[2], *rows[:2]])
    assert payload_texts(nats, stream) == ["1", "1", "2"]
    written(sink, rows, BatchId("query-1", 1))
    assert payload_texts(nats, stream) == ["1", "1", "2", "1", "1", "2"]


def test_message_ids_from_columns(nats: Nats) -> None:
    stream = nats.new_stream()
    sink = make_sink(nats, subject=f"{stream}.a", stream=stream, message_id="order-{id}")
    written(sink, [{"text": "1", "id": 1}, {"text": "2", "id": 1}, {"text": "3", "id": 2}])
    assert payload_texts(nats, stream) == ["1", "3"]
    assert nats.messages(stream)[0].headers["Nats-Msg-Id"] == "order-1"


def test_a_subject_of_another_stream(nats: Nats) -> None:
    stream, other = nats.new_stream(), nats.new_stream()
    sink = make_sink(nats, subject="{to}", stream=stream)
    rows = [
        {"text": "1", "to": f"{stream}.a"},
        {"text": "2", "to": f"{other}.a"},
        {"text": "3", "to": nats.new_name()},
    ]
    failures = written(sink, rows)
    assert [(failure.index, failure.error.code) for failure in failures] == [
        (1, "rejected"),
        (2, "unknown-subject"),
    ]
    assert payload_texts(nats, stream) == ["1"] and payload_texts(nats, other) == []


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_subject_without_permission(nats: Nats, confirmed: bool) -> None:
    stream = nats.new_stream()
    options = {"stream": stream} if confirmed else {}
    sink = make_sink(nats, subject="{to}", **options)
    rows = [{"text": "1", "to": "forbidden.a"}, {"text": "2", "to": f"{stream}.a"}]
    (failure,) = written(sink, rows)
    assert (failure.index, failure.error.code) == (0, "authorization")
    assert payload_texts(nats, stream) == ["2"]


def test_a_message_above_the_limit_of_the_stream(nats: Nats) -> None:
    stream = nats.new_stream(max_msg_size=1000)
    sink = make_sink(nats, subject=f"{stream}.a", stream=stream)
    (failure,) = written(sink, [{"text": "x" * 2000}, {"text": "small"}])
    assert (failure.index, failure.error.code) == (0, "rejected")
    assert payload_texts(nats, stream) == ["small"]


def test_a_missing_stream(nats: Nats) -> None:
    with pytest.raises(Permanent):
        make_sink(nats, subject="a", stream="MISSING").check()


def values(nats: Nats, bucket: str) -> dict[str, bytes]:
    """Returns the keys and values of the bucket."""

    async def read(client: Any) -> dict[str, bytes]:
        store = await client.jetstream().key_value(bucket)
        return {key: (await store.get(key)).value for key in await store.keys()}

    return nats.ask(read)


def test_keys_from_columns(nats: Nats) -> None:
    bucket = nats.new_bucket()
    sink = make_sink(nats, bucket=bucket, key="user.{id}")
    failures = written(sink, [{"text": "1", "id": "a"}, {"text": "2", "id": "b c"}])
    assert [(failure.index, failure.error.code) for failure in failures] == [(1, "invalid-subject")]
    assert values(nats, bucket) == {"user.a": b"1"}


def test_the_primary_key_is_the_key(nats: Nats) -> None:
    bucket = nats.new_bucket()
    rows = [
        {"text": "1", "a": 1, "b": "x"},
        {"text": "2", "a": 1, "b": "x"},
        {"text": "3", "a": 2, "b": "x"},
    ]
    written(make_sink(nats, ("a", "b"), bucket=bucket), rows)
    assert values(nats, bucket) == {"1.x": b"2", "2.x": b"3"}


def test_a_row_without_value_deletes_its_key(nats: Nats) -> None:
    bucket = nats.new_bucket()
    sink = make_sink(nats, bucket=bucket, key="{id}")
    written(sink, [{"text": "1", "id": "a"}, {"text": "2", "id": "b"}])
    written(sink, [{"text": None, "id": "a"}], BatchId("query-1", 1))
    assert values(nats, bucket) == {"b": b"2"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"subject": "a.{missing}"}, "unknown-column"),
        ({"subject": "a", "headers": {"H": "{missing}"}}, "unknown-column"),
        ({"subject": "a", "stream": "S", "message_id": "{missing}"}, "unknown-column"),
        ({"bucket": "B", "key": "{missing}"}, "unknown-column"),
        ({"bucket": "B", "key": "text"}, "column-name"),
        ({"bucket": "B"}, "missing-option"),
    ],
)
def test_missing_columns(options: dict[str, Any], code: str, nats: Nats) -> None:
    with pytest.raises(PlanError) as caught:
        make_sink(nats, **options).check_schema(pa.schema([("text", pa.string())]))
    assert caught.value.code == code
