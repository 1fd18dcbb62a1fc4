"""Dead letters: collected from committed batches, kept in the state directory or a sink."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import StateError
from penstock.core.files.durable import (
    copy_durably,
    create_directory_durably,
    rename_durably,
    sync,
)
from penstock.core.files.private_files import open_private
from penstock.core.units import size_text
from penstock.engine.checkpoints.state_age import check_state_age
from penstock.engine.failures.dead_letter_files import (
    first_of_each_id,
    read_batch,
    read_dead_letters,
)
from penstock.engine.reports.inbox import confirm_reports
from penstock.engine.sinks.sink import SinkTask, write
from penstock.engine.tasks.dead_letter_writer import (
    COUNT,
    DEAD_LETTER,
    Spool,
    conceal_messages,
    write_dead_letters,
)
from penstock.engine.tasks.late_candidates import CANDIDATES
from penstock.plan.model import Plan
from penstock.plan.unnamed_nodes import UnnamedNodes
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.files import reading, writing
from penstock.sdk import BatchId

KEPT = ".kept"
"""The folder of a batch with the dead letters of committed sinks, one folder for each."""


class DeadLetters:
    """Dead letters of a state directory: an Arrow file for each batch with dead letters."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, name: str, dead_letters: pa.Table) -> None:
        """Stores letters durably under a name, in place of earlier letters of the name."""
        path = self.directory / f"{name}.arrow"
        hidden = path.with_name(f".{path.name}")
        with writing(path):
            create_directory_durably(self.directory)
            with open_private(hidden, "wb") as file:
                write_dead_letters(file, conceal_messages(dead_letters))
            rename_durably(hidden, path)

    def files(self) -> list[Path]:
        """Returns the files, oldest first."""
        with reading(self.directory):
            if not self.directory.exists():
                return []
            names = [path for path in self.directory.iterdir() if path.suffix == ".arrow"]
            paths = [path for path in names if not path.name.startswith(".")]
            return sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def read(self) -> pa.Table:
        """Returns all letters without duplicates, in order of arrival (schema `DEAD_LETTER`)."""
        tables = [read_file(path) for path in self.files()]
        table = pa.concat_tables(tables) if tables else DEAD_LETTER.empty_table()
        return first_of_each_id(table)

    def count(self) -> int:
        """Returns the number of letters."""
        return int(self.read().num_rows)

    def remove(self, ids: Collection[str]) -> None:
        """Removes letters by ID."""
        self.replace({}, ids)

    def replace(self, changed: Mapping[str, Mapping[str, Any]], removed: Collection[str]) -> None:
        """Replaces the letters in `changed` and removes the letters in `removed`, by ID."""
        for path in self.files():
            dead_letters = read_file(path).to_pylist()
            remaining = [
                changed.get(letter["id"], letter)
                for letter in dead_letters
                if letter["id"] not in removed
            ]
            if remaining == dead_letters:
                continue
            if remaining:
                self.put(path.stem, pa.Table.from_pylist(remaining, schema=DEAD_LETTER))
            else:
                with writing(path):
                    path.unlink()

    def enforce_limits(self, max_size: int, retention: float) -> None:
        """Removes letters older than `retention` seconds.

        Raises StateError if the remaining letters take more than `max_size` bytes.
        """
        oldest = time.time() - retention
        total = 0
        for path in self.files():
            stat = path.stat()
            if stat.st_mtime < oldest:
                with writing(path):
                    path.unlink()
            else:
                total += stat.st_size
        if total > max_size:
            raise StateError(
                f"the dead letters take {size_text(total)}, more than the {size_text(max_size)} "
                "that runtime.dead_letters.max_size allows",
                code="too-many-dead-letters",
                hint="Inspect the dead letters with penstock dead list, fix the pipeline, then "
                "replay or remove the dead letters.",
            )


def read_file(path: Path) -> pa.Table:
    """Reads the letters of a file. Files of earlier versions lack the last columns."""
    try:
        with reading(path):
            return read_dead_letters(path)
    except pa.ArrowInvalid as error:
        raise StateError(
            f"{path} is damaged",
            code="corrupt-state",
            detail=str(error),
            hint="Remove the file. Its dead letters are lost.",
        ) from error


@dataclass
class Collector:
    """The collection of dead letters of committed batches: from the spool to their store, once.

    After a crash the move is repeated: the state directory replaces the file of the batch, and a
    sink receives the same `BatchId`. `read` counts the rows of these batches by query and source.
    A row counts once, however often Spark has computed its batch.
    """

    plan: Plan
    state: StateDirectory
    read: Counter[tuple[str, str]] = field(default_factory=Counter)
    untimed: Counter[tuple[str, str]] = field(default_factory=Counter)
    late: Counter[tuple[str, str]] = field(default_factory=Counter)

    @cached_property
    def _unnamed(self) -> UnnamedNodes:
        return UnnamedNodes(self.plan)

    def clear(self, query: str, batch: int, done: Collection[str] = ()) -> None:
        """Removes the spool of earlier attempts at a batch, except for sinks that are `done`."""
        folder = self.state.spool / query / str(batch)
        if not done:
            shutil.rmtree(folder, ignore_errors=True)
            return
        for path in [*folder.glob("*"), *(folder / KEPT).glob("*")]:
            if path.is_file():
                path.unlink()
            elif path.name != KEPT and (path.parent.name != KEPT or path.name not in done):
                shutil.rmtree(path)

    def keep(self, query: str, batch: int, sink: str) -> None:
        """Keeps the dead letters of an attempt at a batch in which a sink has committed, durably.

        Later attempts do not compute the batch for this sink again.
        """
        folder = self.state.spool / query / str(batch)
        kept = folder / KEPT / sink
        shutil.rmtree(kept, ignore_errors=True)
        if any(folder.rglob("[!.]*.arrow")):
            copy_durably(folder, kept, ignored=(".*", f"*.{COUNT}", f"*.{CANDIDATES}"))

    def collect(self, query: str, through: int | None) -> Counter[str]:
        """Moves the letters of a query's batches up to `through`. Returns counts by node.

        Adds the rows that sources have read to `read`, rows without an event time to `untimed`, and
        late rows to `late`.
        """
        confirm_reports(self.state.spool)
        counts: Counter[str] = Counter()
        for number, folder in self._batches(query):
            if through is None or number > through:
                continue
            dead_letters = read_batch(folder, read_file)
            if dead_letters.num_rows:
                self._move(query, number, dead_letters)
                counts.update(dead_letters.column("node").to_pylist())
            for path in folder.glob(f"[!.]*.{COUNT}"):
                node = path.name.rsplit("-", 2)[0]
                counts_of_task = json.loads(path.read_text())
                self.read[query, node] += counts_of_task["read"]
                self.untimed[query, node] += counts_of_task["untimed"]
                if late := counts_of_task.get("late", 0):
                    self.late[query, node] += late
            self._remove(folder, durably=dead_letters.num_rows > 0)
        return counts

    def tick(self) -> None:
        """Calls `Sink.tick` of the `dead_letter` sink."""
        if self.plan.dead_letter is not None:
            self.plan.dead_letter.sink.tick()

    def complete(self) -> None:
        """Calls `Sink.complete` of the `dead_letter` sink."""
        if self.plan.dead_letter is not None:
            self.plan.dead_letter.sink.complete()

    def _remove(self, folder: Path, durably: bool) -> None:
        """Removes a folder at once: after a crash, a moved batch is complete or absent.

        `durably` also holds after a power failure.
        """
        removed = folder.with_name(".removed")
        shutil.rmtree(removed, ignore_errors=True)
        folder.rename(removed)
        if durably:
            sync(folder.parent)
        shutil.rmtree(removed)

    def _batches(self, query: str) -> Iterator[tuple[int, Path]]:
        root = self.state.spool / query
        if root.exists():
            folders = [path for path in root.iterdir() if path.name.isdigit()]
            for folder in sorted(folders, key=lambda path: int(path.name)):
                yield int(folder.name), folder

    def _move(self, query: str, number: int, dead_letters: pa.Table) -> None:
        sink, dead_letters = self.plan.dead_letter, conceal_messages(dead_letters)
        if sink is None:
            stored = self._with_definitions(dead_letters)
            DeadLetters(self.state.dead_letters).put(f"{query}-{number:08d}", stored)
            return
        spool = Spool(self.plan.name, query, "dead_letter", "sink", "fail")
        batch = self._batch_id(query, number, dead_letters)
        self.state.storage.check_owner()
        check_state_age(sink, batch, self.state.root)
        receipt = write(
            SinkTask.of(sink.sink, spool), batch, 0, iter(_record_batches(dead_letters))
        )
        sink.sink.commit(batch, [receipt] if receipt else [])

    def _with_definitions(self, dead_letters: pa.Table) -> pa.Table:
        """Returns letters with the definitions of their nodes, if the file does not name them."""
        names = dead_letters.column("node").to_pylist()
        definitions = {name: self._unnamed.definition(name) for name in {*names}}
        column = pa.array([definitions[name] for name in names], pa.string())
        return dead_letters.drop_columns(["definition"]).append_column("definition", column)

    def _batch_id(self, query: str, number: int, dead_letters: pa.Table) -> BatchId:
        """Returns the ID of a batch of dead letters. Those of a static table are always batch 0."""
        text = "\n".join(dead_letters.column("id").to_pylist())
        content = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        source = f"{query}-{self.state.life()}"
        if query in self.plan.nodes and self.plan.nodes[query].static:
            source += f"-{content}"
        return BatchId(source, number, content)


def _record_batches(dead_letters: pa.Table) -> list[Any]:
    """Returns the letters for a sink, without the columns that only a replay needs."""
    return list(dead_letters.drop_columns(["header", "definition"]).combine_chunks().to_batches())
