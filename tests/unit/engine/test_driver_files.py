"""Files of the driver's state directory for tasks on another disk."""

from __future__ import annotations

import asyncio
import errno
import json
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from test_updating_rows import changes

from penstock.core.errors import StateError, Transient
from penstock.core.served_state import serves_state
from penstock.engine.driver_files import server as servers
from penstock.engine.driver_files.client import DriverFiles
from penstock.engine.driver_files.handshakes import Handshakes
from penstock.engine.driver_files.server import FileServer, served
from penstock.engine.sources.served_journal import serve_journal
from penstock.engine.spark_session.shared_paths import SharedPath
from penstock.engine.spark_session.versions import versions
from penstock.engine.updating import files
from penstock.engine.updating.files import BucketFiles
from penstock.engine.updating.versions import OperatorStateDirectory, StateVersion
from penstock.journal import Message
from penstock.journal.segment import GROUP_BYTES, Segment
from penstock.sdk import Context, Journal, Read, ReceivingConfig, ReceivingSource


class Received(ReceivingSource[ReceivingConfig]):
    """A source whose messages a test appends to the journal."""

    async def receive(self, journal: Journal) -> None:
        raise NotImplementedError


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A server of the directory `state`."""
    server = FileServer(tmp_path / "state", "127.0.0.1", "127.0.0.1")
    monkeypatch.setattr(servers, "_servers", [server])
    yield server
    server.close()


@pytest.fixture
def on_executor(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this process a task of an executor without the state directory."""
    lock = server.root.parent / "lock"
    lock.write_text("driver")
    state = asdict(SharedPath.on_driver(lock, "", "state-not-shared", ""))
    lock.unlink()
    expected = {"host": "driver", "versions": versions(), "state": state, "required": []}

    class Task:
        def getLocalProperty(self, name: str) -> str | None:
            return json.dumps(expected) if name == "penstock.paths" else None

    task: Any = Task()
    monkeypatch.setattr(TaskContext, "get", lambda: task)


def test_files_are_written_once(server: FileServer) -> None:
    driver, path = server.address, server.root / "operator/1-a/3.changes.arrow"
    driver.write(str(path), b"first")
    driver.write(str(path), b"a later attempt")
    assert driver.read(str(path)) == b"first" == path.read_bytes()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o77 == 0


def test_a_failure_leaves_no_file(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = server.root / "operator/1-a/3.changes.arrow"
    with monkeypatch.context() as patch, pytest.raises(StateError, match="No space left"):
        patch.setattr(servers, "sync", fail)
        server.address.write(str(path), b"first")
    assert not [*path.parent.iterdir()]
    server.address.write(str(path), b"first")
    assert path.read_bytes() == b"first"


def test_a_connection_without_a_thread_is_closed(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Exhausted:
        def __init__(self, **arguments: object) -> None:
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch, pytest.raises(Transient):
        patch.setattr(threading, "Thread", Exhausted)
        server.address.read(str(server.root / "missing"))
    with pytest.raises(StateError, match="cannot read"):
        server.address.read(str(server.root / "missing"))


def test_requests_without_permission(server: FileServer, tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("secret")
    driver = server.address
    for path in (outside, server.root / "../secret"):
        with pytest.raises(StateError, match="is not below"):
            driver.read(str(path))
    with pytest.raises(StateError, match="cannot read"):
        driver.read(str(server.root / "missing"))
    with pytest.raises(Transient) as caught:
        replace(driver, key=b"another").read(str(outside))
    assert caught.value.code == "driver-unreachable"
    server.close()
    with pytest.raises(Transient):
        driver.read(str(outside))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"spark.ssl.enabled": "false"}, True),
        ({"spark.network.crypto.enabled": True}, False),
        ({"spark.authenticate.enableSaslEncryption": "TRUE"}, False),
    ],
)
def test_a_spark_with_encrypted_connections_is_not_served(
    settings: dict[str, Any], expected: bool
) -> None:
    assert serves_state(settings) is expected


def test_an_address_has_no_visible_key(server: FileServer) -> None:
    assert repr(server.address.key) not in repr(server.address)
    assert served(server.root / "a") == server.address and served(server.root.parent) is None


@pytest.mark.slow
@pytest.mark.usefixtures("on_executor")
def test_the_state_of_an_updating_operator(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks of other machines repeat a batch, and read the state from the driver."""
    directory = OperatorStateDirectory(server.root / "updating", 16)
    for batch in range(22):
        for _attempt in range(2):
            monkeypatch.setattr(files, "cache", files.RowCache())
            bucket = BucketFiles.of(directory.path, "op", batch, directory.before(batch))
            state = bucket.load(3)
            assert state.size == batch
            row = changes([((1, str(batch)), 1)], order=batch)
            state.add(row)
            bucket.save(3, state, row, 1)
        directory.save(StateVersion(batch, 16, {"op": bucket.written()}, time=batch))
    chain = directory.before(22).chains["op"][3]
    assert chain[0].is_snapshot and chain[-1].rows == 22
    path = directory.path / chain[-1].path
    path.write_bytes(path.read_bytes()[:-8])
    monkeypatch.setattr(files, "cache", files.RowCache())
    with pytest.raises(StateError, match="bytes instead of") as caught:
        BucketFiles.of(directory.path, "op", 22, directory.before(22)).load(3)
    assert caught.value.code == "corrupt-state"


def test_the_content_of_a_lookup_table(server: FileServer) -> None:
    asked = []

    def table(batch: int | None = None, *, isolated: bool = False) -> pa.Table:
        asked.append((batch, isolated))
        if batch == 9:
            raise Transient("the table changes", code="table-changes", hint="Wait.")
        return pa.table({"id": range(batch or 0)})

    server.tables["lookups/names"] = table
    driver = server.address
    assert driver.table("lookups/names", 3).column("id").to_pylist() == [0, 1, 2]
    assert driver.table("lookups/names", None).num_rows == 0
    with pytest.raises(Transient) as caught:
        driver.table("lookups/names", 9)
    assert (caught.value.code, caught.value.hint) == ("table-changes", "Wait.")
    assert asked == [(3, True), (None, True), (9, True)], "a crash does not end the driver"


@pytest.fixture
def source(server: FileServer) -> Received:
    """A source with ten messages of 1 MiB in segments of 4 MiB."""
    config = ReceivingConfig.model_validate({"journal": {"max_size": "32MiB"}})
    source = Received(config, Context(state=server.root / "source"))
    with source.journal() as journal:
        for number in range(10):
            asyncio.run(journal.append([Message(bytes([number]) * (1 << 20))]))
    serve_journal(source)
    return source


def numbers(source: Received, start: int, end: int) -> list[int]:
    """The messages of a range, as a task reads them from each partition."""
    task: Received = pickle.loads(pickle.dumps(source))
    return [
        payload[0]
        for partition in source.partitions({"position": start}, {"position": end})
        for batch in task.read(partition, Read())
        for payload in batch.column("payload").to_pylist()
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("on_executor")
def test_messages_of_a_journal(
    source: Received, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without the journal receives the records of a range in several parts."""
    sent = []
    chunks = Segment.chunks

    def counted(self: Segment, start: int, end: int) -> Iterator[bytes | bytearray]:
        for chunk in chunks(self, start, end):
            sent.append(len(chunk))
            yield chunk

    monkeypatch.setattr(Segment, "chunks", counted)
    assert len(source.partitions({"position": 3}, {"position": 9})) > 1
    assert numbers(source, 3, 9) == [*range(3, 9)]
    assert len(sent) > 2 and max(sent) < 2 * GROUP_BYTES
    source.commit({"position": 6})
    assert numbers(source, 6, 10) == [*range(6, 10)]
    server.close()
    with pytest.raises(Transient):
        numbers(source, 6, 10)


@pytest.mark.slow
@pytest.mark.usefixtures("on_executor")
def test_damaged_and_removed_messages_of_a_journal(source: Received) -> None:
    """A damaged record is an error after the records before it. Rows are never missing."""
    directory = source.directory
    last = max(directory.glob("*.segment"))
    first = int(last.stem)
    content = bytearray(last.read_bytes())
    content[-9] ^= 1
    last.write_bytes(content)
    with pytest.raises(StateError, match=f"is corrupt at byte .*: record {9}") as caught:
        numbers(source, 0, 10)
    assert caught.value.code == "corrupt-journal"
    task: Received = pickle.loads(pickle.dumps(source))
    last.unlink()
    with pytest.raises(StateError, match=f"has no records {first} to 9"):
        list(task.read((first - 1, 10), Read()))


@pytest.mark.slow
def test_a_peer_without_a_key_is_disconnected(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silent peers, and those that send a byte at a time, have no connection for long."""
    driver = server.address
    path = server.root / "a"
    driver.write(str(path), b"content")
    monkeypatch.setattr(server, "_handshakes", Handshakes(seconds=0.2, count=3))
    silent = [socket.create_connection((driver.host, driver.port)) for _ in range(7)]
    assert read_in_time(driver, path) == b"content", "peers with a key wait for a place"
    for peer in silent:
        peer.settimeout(30)
        while peer.recv(1 << 10):
            peer.sendall(b"\0")
        peer.close()


def read_in_time(driver: DriverFiles, path: Path) -> bytes:
    """Reads a file. A busy machine may not prove in time that it has the key."""
    for _ in range(50):
        with suppress(Transient):
            return driver.read(str(path))
    raise AssertionError
