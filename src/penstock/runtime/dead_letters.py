"""Dead letters: from the spool of committed batches to the state directory, or to a sink."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import StateError
from penstock.core.units import size_text
from penstock.engine.sink import SinkTask, write
from penstock.engine.spool import DEAD_LETTER, SKIPPED, Spool, numbered
from penstock.plan.model import Plan
from penstock.runtime.state import StateDirectory, writing
from penstock.sdk import BatchId


class DeadLetters:
    """The dead letters that a state directory keeps: one file for each batch that has some."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, name: str, letters: pa.Table) -> None:
        """Keeps letters under a name; the same name again replaces them."""
        path = self.directory / f"{name}.arrow"
        hidden = path.with_name(f".{path.name}")
        with writing(path):
            self.directory.mkdir(parents=True, exist_ok=True)
            with pa.OSFile(str(hidden), "wb") as file, pa.ipc.new_file(file, DEAD_LETTER) as writer:
                writer.write_table(letters)
            hidden.replace(path)

    def files(self) -> list[Path]:
        """The files, oldest first."""
        if not self.directory.exists():
            return []
        found = [p for p in self.directory.glob("*.arrow") if not p.name.startswith(".")]
        return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def read(self) -> pa.Table:
        """All letters, each once, in the order in which they came."""
        tables = [read_file(path) for path in self.files()]
        table = pa.concat_tables(tables) if tables else DEAD_LETTER.empty_table()
        return _each_once(table)

    def count(self) -> int:
        """How many there are."""
        return int(self.read().num_rows)

    def remove(self, ids: Collection[str]) -> None:
        """Takes letters out."""
        self.replace({}, ids)

    def replace(self, changed: Mapping[str, Mapping[str, Any]], gone: Collection[str]) -> None:
        """Puts changed letters, by their ids, in place of the old ones and takes others out."""
        for path in self.files():
            letters = read_file(path).to_pylist()
            left = [changed.get(each["id"], each) for each in letters if each["id"] not in gone]
            if left == letters:
                continue
            if left:
                self.put(path.stem, pa.Table.from_pylist(left, schema=DEAD_LETTER))
            else:
                path.unlink()

    def bound(self, largest: int, retention: float) -> None:
        """Removes old letters. Raises StateError when the others take more than `largest` bytes."""
        oldest = time.time() - retention
        total = 0
        for path in self.files():
            stat = path.stat()
            if stat.st_mtime < oldest:
                path.unlink()
            else:
                total += stat.st_size
        if total > largest:
            raise StateError(
                f"the dead letters take {size_text(total)}, more than the {size_text(largest)} "
                "that runtime.dead_letters.max_size allows",
                code="too-many-dead-letters",
                hint="look at them with penstock dead list, mend the pipeline, then replay or "
                "remove them",
            )


def _each_once(letters: pa.Table) -> pa.Table:
    """The first of the letters with the same id."""
    first: dict[str, int] = {}
    for index, identity in enumerate(letters.column("id").to_pylist()):
        first.setdefault(identity, index)
    return letters.take(pa.array(list(first.values()), pa.int64()))


def read_file(path: Path) -> pa.Table:
    """The letters of one file."""
    with pa.memory_map(str(path)) as source:
        table: pa.Table = pa.ipc.open_file(source).read_all()
    return table.cast(DEAD_LETTER)


@dataclass
class Collector:
    """Moves the spools of committed batches to where dead letters go, each batch exactly once.

    A crash in the middle repeats the move: the state directory replaces the batch's file, and a
    sink is given the same `BatchId` again. `skipped` counts, by query and source, the rows of these
    batches that were left out because the query does not need them.
    """

    plan: Plan
    state: StateDirectory
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)

    def clear(self, query: str, batch: int) -> None:
        """A batch begins, perhaps again: what an earlier try left does not count."""
        shutil.rmtree(self.state.spool / query / str(batch), ignore_errors=True)

    def collect(self, query: str, through: int | None) -> Counter[str]:
        """Moves the spools of a query's batches up to `through`. Returns counts by node.

        Rows that sources left out are counted in `skipped`.
        """
        counts: Counter[str] = Counter()
        for number, folder in self._batches(query):
            if through is None or number > through:
                continue
            letters = self._letters(folder)
            if letters.num_rows:
                self._move(query, number, letters)
                counts.update(letters.column("node").to_pylist())
            for path in folder.glob(f"[!.]*.{SKIPPED}"):
                self.skipped[query, path.name.split("-decode-")[0]] += int(path.read_text())
            shutil.rmtree(folder)
        return counts

    def _batches(self, query: str) -> Iterator[tuple[int, Path]]:
        root = self.state.spool / query
        if root.exists():
            folders = [path for path in root.iterdir() if path.name.isdigit()]
            for folder in sorted(folders, key=lambda path: int(path.name)):
                yield int(folder.name), folder

    def _letters(self, folder: Path) -> pa.Table:
        ways: dict[Path, list[pa.Table]] = {}
        for path in sorted(folder.rglob("*.arrow")):
            if not path.name.startswith("."):
                ways.setdefault(path.parent, []).append(read_file(path))
        tables = [numbered(pa.concat_tables(each)) for each in ways.values()]
        return _each_once(pa.concat_tables([DEAD_LETTER.empty_table(), *tables]))

    def _move(self, query: str, number: int, letters: pa.Table) -> None:
        sink = self.plan.dead_letter
        if sink is None:
            DeadLetters(self.state.dead_letters).put(f"{query}-{number:08d}", letters)
            return
        spool = Spool(self.plan.name, query, "dead_letter", "sink", "fail")
        batch = BatchId(f"{query}-{self._life()}", number)
        receipt = write(SinkTask.of(sink.sink, spool), batch, 0, iter(_single(letters)))
        sink.sink.finish(batch, [receipt] if receipt else [])

    def _life(self) -> str:
        """Another after `--fresh`, so that batch numbers do not clash with an earlier life's."""
        life = self.state.read("life")
        if life is None:
            life = {"id": os.urandom(4).hex()}
            self.state.write("life", life)
        return str(life["id"])


def _single(letters: pa.Table) -> list[Any]:
    return list(letters.combine_chunks().to_batches())
