"""The sink of files is killed before and after each operation on the disk; then it goes on.

Whatever happens, a reader of the directory never sees a row twice, a part of a file, or a row of
a batch that comes later; and in the end every row is there.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from penstock.connectors.files import FilesSink, FilesSinkConfig
from penstock.connectors.files.local import LocalStorage
from penstock.connectors.files.object_store import ArrowStorage
from penstock.sdk import BatchId, Context, Transient

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
BATCHES, ROWS = 3, 6
clock = [1e9]
CHANGES = ("create", "close_durably", "replace", "move", "sync_directory", "delete", "prune")


class Killed(BaseException):
    """The process ends here: nothing after this runs."""


class Fuse:
    """Lets `left` half operations happen: odd ends before one, even after one.

    Then the process is killed, or with `mild` this one operation fails.
    """

    def __init__(self, left: int | None, mild: bool = False) -> None:
        self.left = left
        self.mild = mild
        self.spent = 0
        self.moments: list[int] = []
        """The half operations before which the disk has changed."""
        self._ended = False

    def burn(self, begun: str | None = None) -> None:
        """Spends the begin of an operation, or its end.

        Between an end and the next begin the disk changes only if rows are written to an open file.
        """
        if begun in (None, "close_durably") or not self._ended:
            self.moments.append(self.spent)
        self._ended = begun is None
        self.spent += 1
        if self.left is not None and self.spent > self.left:
            if not self.mild:
                raise Killed
            self.left = None
            raise OSError(errno.ENOSPC, "no space left")


def fused(kind: type, fuse: Fuse) -> type:
    """The storage with a fuse in all operations that change something."""

    def guarded(name: str) -> Any:
        original = getattr(kind, name)

        def method(self: Any, *args: Any) -> Any:
            fuse.burn(name)
            result = original(self, *args)
            fuse.burn()
            return result

        return method

    def torn_append(self: Any, source: str, target: str, start: int | None) -> None:
        """An append that the kill may end in the middle of a row."""
        fuse.burn("append")
        content = Path(source).read_bytes()
        with Path(target).open("ab") as file:
            size = file.tell()
            if start in (None, size):
                file.write(content[: len(content) // 2 - 1])
        fuse.burn()
        os.truncate(target, size)
        kind.append(self, source, target, start)
        fuse.burn()

    return type(f"Fused{kind.__name__}", (kind,), {
        **{name: guarded(name) for name in CHANGES}, "append": torn_append,
    })  # fmt: skip


class World:
    """A directory that a pipeline writes to, in one process after the other."""

    def __init__(self, root: Path, lines: Any, remote: bool, options: dict[str, Any]) -> None:
        self.root, self.format, self.remote, self.options = root, lines, remote, options
        self.written = 0
        self.attempts = 0
        self.last_batch = range(0)
        """The half operations of the last batch, if it was written at once."""
        self.appended_file = "all.gz" if options.get("compression") == "gzip" else "all.jsonl"

    def sink(self, fuse: Fuse) -> FilesSink:
        config = FilesSinkConfig.model_validate({"path": str(self.root / "out"), **self.options})
        if config.append:
            config = config.model_copy(update={"path": f"{config.path}/{self.appended_file}"})
        sink = FilesSink(config, Context("p", "n"))
        sink.format = self.format
        if self.remote:
            sink.storage = fused(ArrowStorage, fuse)(pafs.LocalFileSystem())
        else:
            sink.storage = fused(LocalStorage, fuse)()
        return sink

    def run(self, fuse: Fuse) -> None:
        """One process: from the last batch that Spark has in its commit log, to the end."""
        sink = self.sink(fuse)
        self.try_twice(sink.recover)
        while self.written < BATCHES:
            before = fuse.spent
            self.try_twice(lambda: self.batch(sink))
            self.last_batch = range(before, fuse.spent)
            self.written += 1
            clock[0] += 20
            with suppress(Transient):
                sink.tick()
        self.try_twice(sink.complete)

    def try_twice(self, call: Any) -> None:
        """What the engine does about an error that is worth another try."""
        try:
            call()
        except Transient:
            self.check()
            call()

    def batch(self, sink: FilesSink) -> None:
        """The same rows each time, but other partitions."""
        self.attempts += 1
        batch = BatchId("query", self.written)
        partitions = 2 - self.attempts % 2
        receipts = []
        for partition in range(partitions):
            writer = sink.writer(sink.open(), batch, partition, SCHEMA)
            own = rows(self.written)[partition::partitions]
            for part in (own[:1], own[1:]):
                writer.write(pa.RecordBatch.from_pylist(part, schema=SCHEMA))
            receipts.append(json.loads(json.dumps(writer.commit())))
        sink.commit(batch, receipts)

    def visible(self) -> list[int]:
        """The rows that a reader sees, hidden directories included."""
        suffixes = (f".{self.format.extension}", ".gz")
        found = [
            Path(directory, name)
            for directory, _, names in os.walk(self.root / "out")
            for name in names
            if name.endswith(suffixes)
        ]
        return sorted(id for path in found for id in self._ids(path))

    def _ids(self, path: Path) -> Iterator[int]:
        from penstock.connectors.files.decompression import DecompressedStream
        from penstock.sdk import Read

        read = Read()
        schema = pa.schema([SCHEMA.field("id")])
        with path.open("rb") as file:
            stream = DecompressedStream(file, "gzip", False) if path.suffix == ".gz" else file
            for batch, _ in self.format.read_file(stream, schema, "", read):
                yield from batch.column("id").to_pylist()
            assert not read.bad
            assert getattr(stream, "failure", None) is None

    def check(self) -> None:
        seen = self.visible()
        assert len(seen) == len(set(seen)), "a row is there twice"
        assert set(seen) <= expected(self.written + 1), "a row is there too early"

    def check_end(self) -> None:
        assert self.visible() == sorted(expected(BATCHES))
        assert not list((self.root / "out").rglob("*.tmp"))


def rows(batch: int) -> list[dict[str, Any]]:
    return [{"id": i, "v": "xy"[i % 2]} for i in range(batch * ROWS, (batch + 1) * ROWS)]


def expected(batches: int) -> set[int]:
    return set(range(min(batches, BATCHES) * ROWS))


OPTIONS = {
    "plain": {},
    "partitioned": {"partition_by": ["v"]},
    "gzip": {"compression": "gzip", "roll": {"max_size": 10**6}},
    "rolled by size": {"roll": {"max_size": 400}},
    "rolled by time": {"roll": {"interval": "0s"}},
    "rolled by the clock": {"roll": {"interval": "10s"}},
    "rolled at the end": {"roll": {"max_size": 10**6}, "partition_by": ["v"]},
}


PAIRS = [("blocks", False), ("lines", True), ("lines", False), ("blocks", True)]
"""A format, and whether the storage is that of PyArrow."""


def cases(others: int) -> pytest.MarkDecorator:
    """Returns a case of each option. The pairs of kills and of errors have nothing in common."""
    pairs = [PAIRS[number % 4 ^ others] for number in range(len(OPTIONS))]
    names = [f"{name}-{form}-{remote}" for name, (form, remote) in zip(OPTIONS, pairs, strict=True)]
    found = [(each, *pair) for each, pair in zip(OPTIONS.values(), pairs, strict=True)]
    return pytest.mark.parametrize(("options", "form", "remote"), found, ids=names)


@pytest.mark.slow
@cases(0)
def test_a_kill_at_every_operation(
    tmp_path: Path, request: Any, monkeypatch: Any, options: Any, form: str, remote: bool
) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)
    monkeypatch.setattr("time.time", lambda: clock[0])
    kill_everywhere(tmp_path, request.getfixturevalue(form), remote, options)


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_kill_at_every_operation_of_an_appended_file(
    tmp_path: Path, lines: Any, monkeypatch: Any, compression: str
) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)
    monkeypatch.setattr(World, "check", lambda world: None)
    kill_everywhere(tmp_path, lines, False, {"append": True, "compression": compression})


def kill_everywhere(root: Path, form: Any, remote: bool, options: dict[str, Any]) -> None:
    """Kills runs at all moments but those of the last batch, which are those of the middle one."""
    whole, whole_world = Fuse(None), World(root / "whole", form, remote, options)
    whole_world.run(whole)
    for first in whole.moments:
        if first in whole_world.last_batch:
            continue
        world = World(root / str(first), form, remote, options)
        with suppress(Killed):
            world.run(Fuse(first))
        world.check()
        with suppress(Killed):
            world.run(Fuse((first * 7) % 23))
        world.check()
        if first % 3 == 0 and world.written:
            world.written -= 1
        world.run(Fuse(None))
        world.check_end()


@pytest.mark.slow
@cases(1)
def test_an_error_at_every_operation(
    tmp_path: Path, request: Any, monkeypatch: Any, options: Any, form: str, remote: bool
) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)
    monkeypatch.setattr("time.time", lambda: clock[0])
    form = request.getfixturevalue(form)
    whole, whole_world = Fuse(None), World(tmp_path / "whole", form, remote, options)
    whole_world.run(whole)
    for at in range(whole.spent):
        if at in whole_world.last_batch:
            continue
        world = World(tmp_path / str(at), form, remote, options)
        world.run(Fuse(at, mild=True))
        world.check_end()
