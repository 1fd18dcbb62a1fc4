"""Changes of collections of MongoDB: snapshot and change stream, without Spark."""

from __future__ import annotations

import datetime as dt
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from bson import Binary, Decimal128, Int64, ObjectId

from penstock.connectors.mongodb import MongodbSource
from penstock.connectors.mongodb.changes import snapshot
from penstock.core.errors import OptionError, PenstockError, Permanent
from penstock.sdk import Read
from penstock.sdk.database.changes.progress import DONE, Progress
from servers.ferretdb import FerretDb
from servers.mongodb import DATABASE, ReplicaSet
from table_changes import Changes, Row, changes_of, fails


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

    def create(state: str = "state", *, process: bool = False, **options: Any) -> Changes:
        config = MongodbSource.config_type.model_validate(
            {"url": replica_set.url, "collection": collection.name, "changes": True, **options}
        )
        started.append(changes_of(MongodbSource, config, tmp_path / state, in_thread=not process))
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
        while not ended.is_set():
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
            time.sleep(0.002)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        changes.start()
        for part in (2000, 10_500):
            changes.until(lambda part=part: len(changes.table()) > part)
            changes.kill()
        changes.until(lambda: in_stream(changes) and len(changes.rows) > 12_500)
    finally:
        ended.set()
        worker.join()
    changes.until(lambda: changes.table() == rows_of(collection, "n"))
    assert {row["_op"] for row in changes.rows} == {"i", "u", "d"}
    first = [row["_id"] for row in changes.rows if row["snapshot"]]
    assert len(first) == len(set(first))


def test_changes_of_one_time_are_read_once(client: Any, collection: Any, changes: Any) -> None:
    """A kill within the documents of one time, as of a transaction, repeats and loses nothing."""
    collection.insert_one({"_id": -1, "body": ""})
    changes = changes(process=True)
    changes.start()
    changes.until(lambda: in_stream(changes))
    for start in (0, 20_000):
        collection.insert_many([{"_id": start + each, "body": "x" * 500} for each in range(20_000)])
    changes.until(lambda: len(changes.read()) > 0)
    changes.kill()
    changes.until(lambda: len([changes.read(), *changes.rows][1:]) >= 40_001)
    assert [row["_id"] for row in changes.rows] == [-1, *range(40_000)]
    changes.stop()
    collection.delete_one({"_id": 7})
    changes.start()
    changes.until(lambda: changes.table() == rows_of(collection, "body"))
    assert len(changes.rows) == 40_002
    last = changes.rows[-1]
    assert last["_op"] == "d" and last["body"] is None and last["lsn"].startswith("82")
