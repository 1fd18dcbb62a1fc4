"""The sink of files: complete ones only, each row once."""

from __future__ import annotations

import io
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.files.access import ObjectStore, Place
from penstock.connectors.files.compression import SUFFIX
from penstock.connectors.files.listing import location_of
from penstock.connectors.files.merging import Merger, due
from penstock.connectors.files.parts import Ledger, Life, Part, life_name, sink_name
from penstock.connectors.files.storage import Storage
from penstock.connectors.files.writing import FilesWriter, Shape
from penstock.core.errors import OptionError, PlanError, raise_all
from penstock.sdk import (
    BatchId,
    ByteSize,
    Capability,
    Config,
    Duration,
    FileFormat,
    Receipt,
    Sink,
)
from penstock.sdk.kit.named import need_columns

SPLIT = 1_000_000_000
_locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)


class Roll(Config):
    """When small files have become a large one; whichever comes first."""

    size: ByteSize | None = Field(default=None, ge=1)
    """The size of a file; bytes as they are on disk."""
    interval: Duration | None = None
    """How long a row waits before it becomes visible; a tenth longer at most."""

    @model_validator(mode="after")
    def _something(self) -> Roll:
        if self.size is None and self.interval is None:
            raise ValueError("give size, interval, or both")
        return self


class FilesSinkConfig(Config):
    path: Place
    """The directory, or its URL (`s3://`, `gs://`, `abfs://`, `file://`)."""
    storage: ObjectStore | None = None
    """How the object store of an `s3://` URL is reached."""
    partition_by: list[str] = []
    """Columns that become directories, `carrier=AA/`, and are left out of the files."""
    roll: Roll | None = None
    """Collect the rows of several batches into one file. Without it each batch makes its own."""
    compression: Literal["none", "gzip", "bz2", "xz", "zstd", "lz4"] = "none"
    """How files are compressed. Formats that compress by themselves (parquet) have their own."""
    prefix: str = Field(default="part", pattern=r"^[A-Za-z0-9][A-Za-z0-9 .=_-]*$")
    """How the names of files begin."""


class FilesSink(Sink[FilesSinkConfig]):
    """Writes files that are complete as soon as they can be seen.

    Each partition of a batch makes a file. No reader of the directory ever sees a part of a file,
    a row twice or a row that was not committed.

    ```yaml
    type: files
    from: hourly
    path: out/hourly
    format: parquet
    partition_by: [carrier]
    roll: {size: 128 MB, interval: 1 minute}
    ```
    """

    acknowledges = "its files are complete and can be seen"
    capabilities = frozenset({Capability.ROWS, Capability.ORDERED, Capability.EXACTLY_ONCE})
    storage: Storage | None = None
    """Where it writes, if it is not what `path` says."""
    _ticked = 0.0

    def format_for(self) -> str:
        return "json"

    def accepts(self, columns: pa.Schema) -> None:
        raise_all(need_columns(self.config.partition_by, columns, "partition_by"))
        kept = pa.schema([each for each in columns if each.name not in self.config.partition_by])
        writer = self._file_format().file_writer(io.BytesIO(), kept)
        writer.write(pa.RecordBatch.from_pylist([], kept))
        writer.close()

    def check(self) -> None:
        self._file_format()
        storage, root = self._place()
        probe = f"{root.rstrip('/')}/.penstock/{self._name}/probe"
        with storage.told("write to", storage.url(root)):
            storage.replace(probe, b"")
            storage.delete(probe)

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> FilesWriter:
        form = self._file_format()
        codec = self._codec()
        suffix = f".{form.extension.lstrip('.')}{SUFFIX.get(codec or '', '')}"
        keep_schema = self.config.roll is not None and not form.concatenable
        shape = Shape(form, codec, suffix, self.config.partition_by, SPLIT, keep_schema)
        return FilesWriter(self._life(batch.query), shape, batch.number, partition, schema)

    def finish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """The first call that writes the ledger wins; the parts of any other are discarded."""
        with self._alone():
            life = self._life(batch.query)
            ledger = life.ledger()
            if batch.number > ledger.batch:
                ordered = sorted(receipts, key=lambda receipt: int(receipt["partition"]))
                parts = [Part(**file) for receipt in ordered for file in receipt["files"]]
                ledger = self._decide(life, replace(ledger, batch=batch.number), parts)
            else:
                life.carry_out(ledger)
            life.tidy(ledger, batch.number)

    def recover(self) -> None:
        with self._alone():
            for life in self._lives():
                ledger = life.ledger()
                life.carry_out(ledger)
                life.tidy(ledger)

    def tick(self) -> None:
        roll = self.config.roll
        if roll is None or roll.interval is None or time.time() - self._ticked < roll.interval / 10:
            return
        self._ticked = time.time()
        with self._alone():
            for life in self._lives():
                ledger = life.ledger()
                if self._due(ledger.staged)[0]:
                    life.tidy(self._decide(life, ledger, ()))
                else:
                    life.carry_out(ledger)

    def complete(self) -> None:
        with self._alone():
            for life in self._lives():
                ledger = life.ledger()
                if ledger.staged:
                    ledger = self._decide(life, ledger, (), everything=True)
                else:
                    life.carry_out(ledger)
                life.tidy(ledger)

    def _decide(
        self, life: Life, ledger: Ledger, parts: Sequence[Part], everything: bool = False
    ) -> Ledger:
        """Decides what becomes visible of the staged parts and the new ones, and makes it so."""
        life.carry_out(ledger)
        ready, waiting = self._due([*ledger.staged, *parts], everything)
        merger = Merger(life, self._file_format(), self._codec())
        moves = tuple(merger.moves(ledger.batch, ready, self.config.prefix))
        decided = Ledger(ledger.batch, moves, tuple(waiting))
        life.decide(decided)
        moved = {source for source, _ in moves}
        life.discard(part for group in ready for part in group if part.temp not in moved)
        return decided

    def _due(
        self, parts: Sequence[Part], everything: bool = False
    ) -> tuple[list[list[Part]], list[Part]]:
        roll = self.config.roll
        if roll is None:
            return [[part] for part in parts], []
        return due(parts, roll.size, 0.0 if everything else roll.interval, time.time())

    @property
    def _name(self) -> str:
        return sink_name(self.context.pipeline, self.context.node)

    def _place(self) -> tuple[Storage, str]:
        location = location_of(self.config.path, self.config.storage)
        if location.pattern is not None:
            raise OptionError.of("path", message="the path of a sink is a directory, not a pattern")
        if self.config.path.startswith(("hdfs:", "viewfs:")):
            raise OptionError.of("path", message="files on HDFS can be read, but not written")
        return self.storage or location.storage, location.root

    def _life(self, query: str) -> Life:
        storage, root = self._place()
        name = life_name(self.context.pipeline, self.context.node, query)
        return Life(storage, root, self._name, name)

    def _lives(self) -> Iterator[Life]:
        return Life.all(*self._place(), self._name)

    def _codec(self) -> str | None:
        return None if self.config.compression == "none" else self.config.compression

    def _file_format(self) -> FileFormat[Any]:
        if not isinstance(self.format, FileFormat):
            raise PlanError("this format cannot be written to files")
        if self.format.needs_seek and self._codec() is not None:
            raise PlanError(
                "this format compresses by itself", hint="leave compression out of the sink"
            )
        return self.format

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One at a time in this process, with errors of the disk told as the user's."""
        storage, root = self._place()
        url = storage.url(root)
        with _locks[f"{url} {self._name}"], storage.told("write to", url):
            yield
