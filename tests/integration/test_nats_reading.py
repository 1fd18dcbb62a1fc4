"""Reading NATS by sequence: subjects, start positions, data loss, keys, progress."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from nats_reading import make_source, message_count, payloads, rows
from pyspark.sql import SparkSession

from penstock import app
from penstock.app import RunOptions
from penstock.sdk import Permanent, Read
from servers.nats import Nats


def test_subjects_of_a_stream(nats: Nats) -> None:
    stream = nats.new_stream()
    for subject in ("a.1", "b.1", "a.2", "c"):
        nats.put(f"{stream}.{subject}", [subject.encode()])
    source = make_source(nats, stream=stream, subject=[f"{stream}.a.*", f"{stream}.c"])
    assert sorted(payloads(source)) == [b"a.1", b"a.2", b"c"]
    start = source.initial_offset()
    assert len(source.partitions(start, source.latest_offset(start))) == 2


def test_metadata_of_a_message_of_a_stream(nats: Nats) -> None:
    stream = nats.new_stream()
    before = datetime.now(UTC)
    nats.put(f"{stream}.a", [b"x"])
    nats.publish(f"{stream}.b", [b"y"], headers={"Kind": "example"})
    source = make_source(nats, stream=stream)
    (first, second), _ = rows(source, "subject", "sequence", "timestamp", "headers")
    assert (first["subject"], first["sequence"]) == (f"{stream}.a", 1)
    assert before <= first["timestamp"] <= second["timestamp"] <= datetime.now(UTC)
    assert (first["headers"], second["headers"]) == (None, [("Kind", "example")])
    assert (second["origin"], second["position"]) == (stream, 2)


def test_start_latest(nats: Nats) -> None:
    stream = nats.new_stream()
    nats.put(f"{stream}.a", [b"1", b"2"])
    source = make_source(nats, stream=stream, start="latest")
    start = source.initial_offset()
    nats.put(f"{stream}.a", [b"3"])
    assert [row["payload"] for row in rows(source, start=start)[0]] == [b"3"]


def test_start_offset(nats: Nats) -> None:
    stream = nats.new_stream()
    nats.put(f"{stream}.a", [b"1", b"2", b"3"])
    assert payloads(make_source(nats, stream=stream, start={"offset": 2})) == [b"2", b"3"]
    with pytest.raises(Permanent) as caught:
        make_source(nats, stream=stream, start={"offset": 9}).initial_offset()
    assert caught.value.code == "unknown-sequence"


def test_start_timestamp(nats: Nats) -> None:
    stream = nats.new_stream()
    nats.put(f"{stream}.a", [b"1", b"2"])
    between = datetime.now(UTC)
    nats.put(f"{stream}.a", [b"3"])
    after = datetime.now(UTC)
    starts = [(between, [b"3"]), (between.replace(tzinfo=None), [b"3"]), (after, [])]
    for time, expected in starts:
        source = make_source(nats, stream=stream, start={"timestamp": time.isoformat()})
        assert payloads(source) == expected


def test_a_missing_stream(nats: Nats) -> None:
    with pytest.raises(Permanent):
        make_source(nats, stream="MISSING").check()


def test_a_work_queue_without_group(nats: Nats) -> None:
    stream = nats.new_stream(retention="workqueue")
    with pytest.raises(Permanent) as caught:
        make_source(nats, stream=stream).check()
    assert caught.value.code == "work-queue"


def trim(nats: Nats) -> tuple[str, Any]:
    """Returns a stream without messages 2 and 3, and the offset after message 1."""
    stream = nats.new_stream(max_msgs=2)
    nats.put(f"{stream}.a", [b"1"])
    _, at = rows(make_source(nats, stream=stream))
    nats.put(f"{stream}.a", [b"2", b"3", b"4", b"5"])
    return stream, at


def test_data_loss_fails(nats: Nats) -> None:
    stream, at = trim(nats)
    with pytest.raises(Permanent) as caught:
        make_source(nats, stream=stream).latest_offset(at)
    assert caught.value.code == "data-gone" and "2 to 3" in caught.value.message


def test_data_loss_becomes_a_dead_letter(nats: Nats) -> None:
    stream, at = trim(nats)
    read = Read()
    read_rows, _ = rows(
        make_source(nats, stream=stream, on_data_loss="continue"), start=at, read=read
    )
    assert [row["payload"] for row in read_rows] == [b"4", b"5"]
    (letter,) = read.bad
    assert letter.origin == stream and "2 to 3" in letter.error.message


def test_a_recreated_stream(nats: Nats) -> None:
    stream = nats.new_stream()
    nats.put(f"{stream}.a", [b"1", b"2"])
    _, at = rows(make_source(nats, stream=stream))
    nats.ask(lambda client: client.jetstream().delete_stream(stream))
    nats.ask(lambda client: client.jetstream().add_stream(name=stream, subjects=[f"{stream}.>"]))
    nats.put(f"{stream}.a", [b"new"])
    with pytest.raises(Permanent) as caught:
        make_source(nats, stream=stream).latest_offset(at)
    assert caught.value.code == "data-gone"
    read = Read()
    read_rows, _ = rows(
        make_source(nats, stream=stream, on_data_loss="continue"), start=at, read=read
    )
    assert [row["payload"] for row in read_rows] == [b"new"] and len(read.bad) == 1


def test_superseded_messages_are_not_data_loss(nats: Nats) -> None:
    stream = nats.new_stream(max_msgs_per_subject=1)
    nats.put(f"{stream}.a", [b"1"])
    _, at = rows(make_source(nats, stream=stream))
    nats.put(f"{stream}.a", [b"2", b"3"])
    read_rows, _ = rows(make_source(nats, stream=stream), start=at)
    assert [row["payload"] for row in read_rows] == [b"3"]


def test_consumer_settings_of_the_progress_consumer(nats: Nats) -> None:
    stream = nats.new_stream()
    settings = {"inactive_threshold": "1 hour", "num_replicas": 1, "description": "example"}
    make_source(
        nats, stream=stream, consumer="pipeline", consumer_settings=settings
    ).initial_offset()
    info: Any = nats.ask(lambda client: client.jetstream().consumer_info(stream, "pipeline"))
    expected = {**settings, "inactive_threshold": 3600}
    assert {name: getattr(info.config, name) for name in settings} == expected


def progress(nats: Nats, stream: str) -> tuple[int, int]:
    """Returns the acknowledged sequence number of the consumer and its pending messages."""
    info: Any = nats.ask(lambda client: client.jetstream().consumer_info(stream, "pipeline"))
    return info.ack_floor.stream_seq, info.num_pending


def test_a_consumer_reports_the_progress(nats: Nats) -> None:
    stream = nats.new_stream()
    nats.put(f"{stream}.a", [b"%d" % number for number in range(5)])
    source = make_source(nats, stream=stream, consumer="pipeline", max_records=3)
    start = source.initial_offset()
    assert progress(nats, stream) == (0, 5)
    end = source.latest_offset(start)
    stop = source.limit_batch(start, end)
    source.commit(stop)
    assert progress(nats, stream) == (3, 2)
    make_source(nats, stream=stream, consumer="pipeline").commit(end)
    assert progress(nats, stream) == (5, 0)
    source.commit(end)
    assert progress(nats, stream) == (5, 0)


def test_progress_with_other_subjects(nats: Nats) -> None:
    stream = nats.new_stream()
    nats.put(f"{stream}.a", [b"1", b"2"])
    source = make_source(nats, stream=stream, subject=f"{stream}.a", consumer="pipeline")
    _, end = rows(source)
    nats.put(f"{stream}.b", [b"other"])
    nats.put(f"{stream}.a", [b"3", b"4"])
    source.commit(end)
    assert progress(nats, stream) == (2, 2)
    source.commit({**end, "sequence": 5})
    source.commit(source.latest_offset(end))
    assert progress(nats, stream)[1] == 0


def test_a_stream_with_interest_retention(nats: Nats) -> None:
    stream = nats.new_stream(retention="interest")
    source = make_source(nats, stream=stream, consumer="pipeline")
    start = source.initial_offset()
    nats.put(f"{stream}.a", [b"1", b"2"])
    assert [row["payload"] for row in rows(source, start=start)[0]] == [b"1", b"2"]
    read_rows, end = rows(source, start=start)
    assert [row["payload"] for row in read_rows] == [b"1", b"2"]
    source.commit(end)
    nats.put(f"{stream}.a", [b"3"])
    assert [row["payload"] for row in rows(source, start=end)[0]] == [b"3"]
    assert message_count(nats, stream) == 1


def test_changes_of_a_bucket(nats: Nats) -> None:
    bucket = nats.new_bucket()

    async def change(client: Any) -> None:
        store = await client.jetstream().key_value(bucket)
        await store.put("user.1", b"one")
        await store.put("user.1", b"two")
        await store.put("other", b"three")
        await store.delete("user.1")
        await store.purge("other")

    nats.ask(change)
    read_rows, _ = rows(
        make_source(nats, bucket=bucket), "key", "revision", "operation", "timestamp"
    )
    shown = [(r["key"], r["revision"], r["operation"], r["payload"]) for r in read_rows]
    assert shown == [
        ("user.1", 1, "put", b"one"),
        ("user.1", 2, "put", b"two"),
        ("user.1", 4, "del", None),
        ("other", 5, "purge", None),
    ]
    assert read_rows[0]["timestamp"] <= read_rows[-1]["timestamp"]


@pytest.mark.spark
def test_a_deletion_is_a_row(nats: Nats, tmp_path: Path, penstock_spark: SparkSession) -> None:
    bucket = nats.new_bucket()

    async def change(client: Any) -> None:
        store = await client.jetstream().key_value(bucket)
        await store.put("a", b"one")
        await store.delete("a")
        await store.put("b", b"")

    nats.ask(change)
    source = {"type": "nats", **nats.login, "bucket": bucket, "metadata": ["key", "operation"]}
    pipeline = {
        "runtime": {"state": str(tmp_path / "state")},
        "sources": {"changes": {**source, "format": "raw", "schema": "value STRING"}},
        "sinks": {"out": {"type": "files", "from": "changes", "path": "out", "format": "json"}},
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(json.dumps(pipeline))
    options = RunOptions(until="caught_up")
    assert not app.run(file, spark=penstock_spark.newSession(), options=options).errors
    (written,) = (tmp_path / "out").glob("*.json*")
    rows = [json.loads(line) for line in written.read_text().splitlines()]
    assert [(row["key"], row["operation"], row.get("value")) for row in rows] == [
        ("a", "put", "one"),
        ("a", "del", None),
        ("b", "put", ""),
    ]


def test_keys_of_a_bucket(nats: Nats) -> None:
    bucket = nats.new_bucket()
    for key in ("user.1", "user.2", "other"):
        nats.put(f"$KV.{bucket}.{key}", [key.encode()])
    assert payloads(make_source(nats, bucket=bucket, keys="user.*")) == [b"user.1", b"user.2"]
    assert payloads(make_source(nats, bucket=bucket, start="latest")) == []
