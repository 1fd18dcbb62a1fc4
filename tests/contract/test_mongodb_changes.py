"""Changes of collections of MongoDB: snapshot and change stream, without Spark."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bson import Binary, Decimal128, Int64, ObjectId, Timestamp

from crossing import hostile
from penstock.connectors.mongodb import MongodbSink, MongodbSource
from penstock.connectors.mongodb.changes import snapshot
from penstock.connectors.mongodb.changes.events import position_of
from penstock.connectors.mongodb.changes.oplog import oplog_after, retained
from penstock.connectors.mongodb.changes.receiver import MongodbReceiver
from penstock.connectors.mongodb.changes.stream import Batch, ChangeStream
from penstock.core.errors import OptionError, PenstockError, Permanent
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.database.changes.progress import DONE, Progress
from penstock.sdk.retained_log import RetainedLog
from servers.ferretdb import FerretDb
from servers.mongodb import DATABASE, ReplicaSet
from table_changes import (
    Changes,
    Row,
    changes_of,
    check_without_snapshot,
    fails,
    pauses_of_writer,
)


@pytest.fixture(scope="module")
def client(replica_set: ReplicaSet) -> Iterator[Any]:
    with closing(replica_set.client()) as client:
        yield client


@pytest.fixture
def collection(client: Any) -> Any:
    return client[DATABASE][f"c{ObjectId()}"]


@pytest.fixture
def changes(replica_set: ReplicaSet, collection: Any, tmp_path: Path) -> Iterator[Any]:
    started: list[Changes] = []

    def create(
        state: str = "state", *, process: bool = False, columns: pa.Schema | None = None,
        **options: Any,
    ) -> Changes:  # fmt: skip
        config = MongodbSource.config_type.model_validate(
            {"url": replica_set.url, "collection": collection.name, "changes": True, **options}
        )
        made = changes_of(
            MongodbSource, config, tmp_path / state, in_thread=not process, columns=columns
        )
        started.append(made)
        return started[-1]

    yield create
    for each in started:
        with suppress(AttributeError, AssertionError):
            each.stop()


def rows_of(collection: Any, *names: str) -> dict[Any, Row]:
    return {
        (each["_id"],): {name: each.get(name) for name in ("_id", *names)}
        for each in collection.find()
    }


def in_stream(changes: Changes) -> bool:
    """Returns whether the snapshot is in the journal."""
    progress = Progress.read(changes.source._reader)
    return progress is not None and progress.chunk == DONE


def test_random_changes_during_the_snapshot(
    client: Any, collection: Any, changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends with the documents of the collection, after two kills of the process."""
    collection.insert_many([{"_id": 2 * each, "n": 0} for each in range(12_000)])
    changes = changes(process=True)
    ended, rng = threading.Event(), random.Random(5)

    def work() -> None:
        pauses = pauses_of_writer()
        while not ended.wait(next(pauses)):
            key = rng.randrange(24_000)
            kind = rng.randrange(4)
            if kind == 0:
                collection.replace_one({"_id": key}, {"_id": key, "n": key}, upsert=True)
            elif kind == 1:
                collection.update_one({"_id": key}, {"$inc": {"n": 1}})
                collection.delete_one({"_id": key})
            elif kind == 2:
                collection.update_many({"_id": {"$in": [key, key + 2]}}, {"$inc": {"n": 1}})
            elif collection.find_one({"_id": -key}) is None:
                collection.insert_many([{"_id": -key, "n": 1}, {"_id": -key - 30_000, "n": 1}])

    worker = threading.Thread(target=work)
    worker.start()
    try:
        changes.start()
        for part in (2000, 10_500):
            changes.until(lambda part=part: len(changes.table()) > part)
            changes.kill()
        changes.until(lambda: in_stream(changes) and len(changes.table()) > 10_500)
    finally:
        ended.set()
        worker.join()
    changes.until(lambda: changes.table() == rows_of(collection, "n"))
    assert {row["_op"] for row in changes.rows} == {"i", "u", "d"}
    first = [row["_id"] for row in changes.rows if row["snapshot"]]
    assert len(first) == len(set(first))


def test_changes_without_a_snapshot(collection: Any, changes: Any) -> None:
    collection.insert_one({"_id": 0, "n": 0})
    check_without_snapshot(
        changes(snapshot=False), lambda id_: collection.insert_one({"_id": id_, "n": id_})
    )


def test_changes_of_one_time_are_read_once(client: Any, collection: Any, changes: Any) -> None:
    """A kill within the documents of one time, as of a transaction, repeats and loses nothing."""
    collection.insert_one({"_id": -1, "body": ""})
    changes = changes(process=True)
    changes.start()
    changes.until(lambda: in_stream(changes))
    for start in (0, 6000):
        collection.insert_many([{"_id": start + each, "body": "x" * 900} for each in range(6000)])
    changes.until(lambda: len(changes.read()) > 0)
    changes.kill()
    changes.until(lambda: len([changes.read(), *changes.rows][1:]) >= 12_001)
    assert [row["_id"] for row in changes.rows] == [-1, *range(12_000)]
    changes.stop()
    collection.delete_one({"_id": 7})
    changes.start()
    changes.until(lambda: changes.table() == rows_of(collection, "body"))
    assert len(changes.rows) == 12_002
    last = changes.rows[-1]
    assert last["_op"] == "d" and last["body"] is None and last["lsn"].startswith("82")


class SingleChanges(ChangeStream):
    """A stream whose batches have one change each."""

    def next(self, seconds: float) -> Batch:
        (change, *_) = super().next(seconds).events
        return Batch([change], change["_id"]["_data"])


async def receive_one(source: Any, client: Any, *, confirms: bool) -> None:
    """Receives one change by a new receiver, which ends when it is in the journal.

    With `confirms` the receiver also stores the position after it.
    """
    with source.journal() as journal:
        collection, stream = source._open(client, journal)
        receiver = MongodbReceiver(collection, client, source.config, stream)
        await receiver.start()
        await receiver.receive()
        await receiver.flush()
        if confirms:
            receiver.confirm(receiver.position)
        receiver.close()


@pytest.mark.parametrize("confirmed", [(), (0, 1, 2, 3, 4), (1, 4)])
def test_restarts_between_changes_of_one_time(
    client: Any, collection: Any, changes: Any, monkeypatch: pytest.MonkeyPatch,
    confirmed: tuple[int, ...],
) -> None:  # fmt: skip
    """The numbers of the changes of one time go on, wherever a receiver ends."""
    collection.insert_one({"_id": -1})
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 1 and in_stream(reader))
    reader.stop()
    collection.insert_many([{"_id": each} for each in range(4)])
    collection.delete_one({"_id": 0})
    monkeypatch.setattr("penstock.connectors.mongodb.changes.source.ChangeStream", SingleChanges)
    for each in range(5):
        asyncio.run(receive_one(reader.source, client, confirms=each in confirmed))
        reader.read()
        assert len(reader.rows) == each + 2
    found = [(row["_op"], row["_id"]) for row in reader.rows]
    assert found == [("i", -1), ("i", 0), ("i", 1), ("i", 2), ("i", 3), ("d", 0)]


VALUES: dict[str, Any] = {
    "small": 1, "big": Int64(2**62), "half": 0.5, "whole": 3.0, "exact": Decimal128("1.50"),
    "text": "é\0", "flag": False, "at": dt.datetime(1969, 7, 20, 1, 2, 3, 4000, tzinfo=dt.UTC),
    "raw": Binary(b"\0\xff"), "who": ObjectId("65f0c4045cb311e7907ba600"), "none": None,
    "in": {"a": [1], "c": Int64(1)}, "list": ["x", None],
}  # fmt: skip


def test_types_of_changes_are_those_of_the_snapshot(
    client: Any, collection: Any, changes: Any
) -> None:
    collection.insert_many([{"_id": ObjectId(), **VALUES}, {"_id": ObjectId()}])
    changes = changes(id_column="id")
    changes.start()
    changes.until(lambda: len(changes.table()) == 2 and in_stream(changes))
    of_snapshot = dict(changes.table())
    found = collection.find_one({"small": 1})
    (row,) = [row for row in of_snapshot.values() if row["small"]]
    assert row["id"] == str(found["_id"]) and row["who"] == "65f0c4045cb311e7907ba600"
    assert row["at"] == VALUES["at"] and row["raw"] == b"\0\xff" and row["list"] == ["x", None]
    documents = [*collection.find()]
    collection.delete_many({})
    collection.insert_many(documents)
    changes.until(lambda: len([changes.read(), *changes.rows][1:]) == 6)
    assert changes.table() == of_snapshot
    deletes = [row for row in changes.rows if row["_op"] == "d"]
    assert all(row["small"] is None and not row["snapshot"] for row in deletes)


def test_ids_of_all_types(
    client: Any, collection: Any, changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks go on across the types of `_id`, whatever a chunk ends with."""
    ids = [
        None, 1, Int64(2), 2.5, Decimal128("3"), "", "a", {}, {"x": {"y": 1}}, Binary(b"\1"),
        Binary(bytes(16), 4), ObjectId(), False, True, dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    ]  # fmt: skip
    for count in (1, 2):
        monkeypatch.setattr(snapshot, "CHUNK_ROWS", count)
        collection.delete_many({})
        collection.insert_many([{"_id": each} for each in ids])
        columns = pa.schema([json_field(pa.field("_id", pa.string()))])
        reader = changes(f"by {count}", columns=columns)
        reader.start()
        reader.until(lambda: len(reader.read() or reader.rows) >= len(ids))  # noqa: B023
        assert len({row["_id"] for row in reader.rows}) == len(ids) == len(reader.rows)
        reader.stop()


def test_documents_that_were_deleted_meanwhile(client: Any, collection: Any, changes: Any) -> None:
    """An update has the current document, and none if it was deleted: then the delete follows."""
    collection.insert_many([{"_id": each, "n": 0} for each in range(3)])
    changes = changes()
    changes.start()
    changes.until(lambda: len(changes.table()) == 3 and in_stream(changes))
    changes.stop()
    collection.update_one({"_id": 1}, {"$set": {"n": 5}})
    collection.update_one({"_id": 2}, {"$set": {"n": 6}})
    collection.replace_one({"_id": 2}, {"_id": 2, "n": 7})
    collection.delete_one({"_id": 1})
    changes.start()
    changes.until(lambda: changes.table() == rows_of(collection, "n"))
    later = [(row["_op"], row["_id"], row["n"]) for row in changes.rows[3:]]
    assert later == [("u", 2, 7), ("u", 2, 7), ("d", 1, None)]
    # The server of the tests has no collection of its oplog.
    changes.until(lambda: changes.source.retained() is not None)
    log = changes.source.retained()
    assert log.share is None and 0 <= log.seconds < 600
    stale = oplog_after(client, changes.source.config, position_of(Timestamp(1_600_000_000, 1)))
    assert stale.seconds is not None and stale.seconds > 10_000_000


def test_the_share_of_an_oplog() -> None:
    oldest, newest = (position_of(Timestamp(1_700_000_000 + s, 1)) for s in (0, 1000))
    found = retained(oldest, position_of(Timestamp(1_700_000_200, 9)), newest)
    assert found == RetainedLog(seconds=800, share=0.8)
    assert retained(oldest, newest + 1, newest) == RetainedLog(seconds=0, share=0.0)
    assert retained(newest, newest, newest).share == 0.0


def test_images_before_and_after_changes(client: Any, collection: Any, changes: Any) -> None:
    """With images each update has its own document, and a delete the last one."""
    images = {"enabled": True}
    client[DATABASE].create_collection(collection.name, changeStreamPreAndPostImages=images)
    collection.insert_one({"_id": 1, "n": 0})
    changes = changes()
    changes.start()
    changes.until(lambda: len(changes.table()) == 1 and in_stream(changes))
    changes.stop()
    for n in (1, 2):
        collection.update_one({"_id": 1}, {"$set": {"n": n}})
    collection.delete_one({"_id": 1})
    changes.start()
    changes.until(lambda: changes.table() == {})
    later = [(row["_op"], row["n"]) for row in changes.rows[1:]]
    assert later == [("u", 1), ("u", 2), ("d", 2)]


def test_a_dropped_collection(client: Any, collection: Any, changes: Any) -> None:
    """The changes before the drop are in the journal, and the error comes at each start."""
    collection.insert_one({"_id": 1})
    changes = changes()
    changes.start()
    changes.until(lambda: len(changes.table()) == 1 and in_stream(changes))
    changes.stop()
    collection.insert_one({"_id": 2})
    collection.drop()
    collection.insert_one({"_id": 3})
    for _ in range(2):
        error = fails(changes, f'"{collection.name}" was dropped at 82')
        assert error.code == "not-found" and "Remove the state" in str(error.hint)
        assert sorted(changes.table()) == [(1,), (2,)]


@pytest.mark.parametrize("policy", ["continue", "snapshot"])
def test_going_on_after_a_loss(
    replica_set: ReplicaSet, client: Any, collection: Any, changes: Any, policy: str
) -> None:
    collection.insert_many([{"_id": each, "n": 0} for each in range(3)])
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 3 and in_stream(reader))
    reader.stop()
    collection.update_one({"_id": 1}, {"$set": {"n": 1}})
    collection.delete_one({"_id": 2})
    replica_set.truncate_oplog()
    error = fails(reader, "any more: changes are lost")
    assert error.code == "data-gone" and "on_data_loss: snapshot" in str(error.hint)
    assert "replSetResizeOplog" in str(error.hint)
    again = changes(on_data_loss=policy)
    again.start()
    read = [] if policy == "continue" else [(0, 0), (1, 1)]
    again.await_loss(3 + len(read))
    after = f'"{again.received}:82' if policy == "continue" else ":82"
    again.until(lambda: after in (again.source.directory / "confirmed").read_text())
    collection.insert_one({"_id": 9, "n": 9})
    rows = again.await_loss(4 + len(read))
    assert [(row["_id"], row["n"]) for row in rows[3:]] == [*read, (9, 9)]


def test_bad_documents_are_dead_letters(client: Any, collection: Any, changes: Any) -> None:
    collection.insert_one({"_id": 1, "n": 1})
    reader = changes()
    reader.start()
    reader.until(lambda: len(reader.table()) == 1 and in_stream(reader))
    collection.insert_many([{"_id": 2, "n": "x"}, {"_id": "y"}, {"_id": 3, "n": 3}])
    reader.until(lambda: sum(map(len, reader.read_again())) == 4)
    rows, found = reader.read_again()
    assert [row["_id"] for row in rows] == [1, 3]
    letters = [json.loads(bad.payload or b"") for bad in found]
    assert letters[0] == {"op": "i", "row": {"_id": {"$numberInt": "2"}, "n": "x"}}
    assert 'column "n": "x"' in found[0].error.message
    letters[0]["row"]["n"] = {"$numberLong": "7"}
    replayed = reader.source.decode(json.dumps(letters[0]).encode(), "journal", 1)
    assert replayed.to_pylist() == [{"_id": 2, "n": 7, "_op": "i"}]
    with pytest.raises(PenstockError, match="not a change"):
        reader.source.decode(b"{", "journal", 1)


def test_servers_and_collections_without_changes(
    ferretdb: FerretDb, client: Any, collection: Any, changes: Any, tmp_path: Path
) -> None:
    collection.insert_one({"_id": 1})
    name = ferretdb.new_collection()
    ferretdb.insert(name, {"_id": 1})
    config = {**ferretdb.login, "collection": name, "changes": True}
    with pytest.raises(Permanent, match="standalone server") as found:
        changes_of(MongodbSource, MongodbSource.config_type.model_validate(config), tmp_path)
    assert found.value.code == "change-streams" and "rs.initiate()" in str(found.value.hint)
    source = changes().source
    source.primary_key = ("n",)
    with pytest.raises(Permanent, match="the primary_key n is not _id"):
        source.check()
    collection.drop()
    with pytest.raises(OptionError, match="there is no collection"):
        source.check()


def test_hostile_names_and_values(replica_set: ReplicaSet) -> None:
    """The server of the tests has no dots in names of fields, unlike MongoDB since version 5."""
    prefix = f"c{ObjectId()}"

    def options(name: str) -> dict[str, Any]:
        return {"url": replica_set.url, "collection": f"{prefix}{name}"}

    names = [name for name in hostile.NAMES if len(name) < 100]
    dots = frozenset(name for name in names if "." in name)
    target = hostile.Target(
        MongodbSink, MongodbSource, options, key="_id", names=names, without=dots
    )  # fmt: skip
    assert target.rejected_columns() == {"a\0b", "$a"}
    of_tables = {name for name in names if "$" in name or name[-1] == "."}
    assert target.rejected_tables() == {"a\0b", *of_tables}
    target.check_values()
