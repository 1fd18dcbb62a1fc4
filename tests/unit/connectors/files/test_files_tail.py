"""Files that grow: each whole line once, through rotation, truncation and restarts."""

from __future__ import annotations

import json
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig, segments
from penstock.core.errors import Permanent, PlanError
from penstock.sdk import Context, Read

SCHEMA = pa.schema([("id", pa.int64())])


class Follower:
    """Reads on from where it was, as a new process each time."""

    def __init__(self, root: Path, lines: Any, pattern: str = "in/*.log*", **options: Any) -> None:
        self.root, self.lines, self.pattern, self.options = root, lines, pattern, options
        self.at: Any = {"files": 0}
        self.bad: list[Any] = []

    def source(self) -> FilesSource:
        config = FilesSourceConfig.model_validate(
            {"path": str(self.root / self.pattern), "tail": True, "order": "name", **self.options}
        )
        source = FilesSource(config, Context(state=self.root / "state"))
        source.format, source.columns = self.lines, SCHEMA
        return source

    def news(self) -> list[tuple[int, int]]:
        """Ids and positions of the rows that are new."""
        source = self.source()
        start, end = self.at, source.latest_offset(self.at)
        self.at = json.loads(json.dumps(end))
        read = Read(metadata=("position",))
        rows = [
            (row["id"], row["position"])
            for partition in source.partitions(start, end)
            for batch in pickle.loads(pickle.dumps(source)).read(partition, read)
            for row in batch.to_pylist()
        ]
        self.bad += read.bad
        return rows

    def ids(self) -> list[int]:
        return [id for id, _ in self.news()]


def say(path: Path, *ids: int, mode: str = "a", end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode) as file:
        file.write("".join(f'{{"id": {i}}}{end}' for i in ids))
    return path


@pytest.fixture
def follower(tmp_path: Path, lines: Any) -> Follower:
    return Follower(tmp_path, lines)


def test_growth(follower: Follower, tmp_path: Path) -> None:
    log = tmp_path / "in" / "a.log"
    assert follower.news() == []
    say(log, 1, 2)
    assert follower.news() == [(1, 1), (2, 2)]
    assert follower.news() == []
    say(log, 3)
    say(tmp_path / "in" / "b.log", 10)
    assert follower.news() == [(3, 3), (10, 1)]


def test_a_line_waits_for_its_end(follower: Follower, tmp_path: Path) -> None:
    log = say(tmp_path / "in" / "a.log", 1)
    with log.open("a") as file:
        file.write('{"id"')
    assert follower.ids() == [1]
    with log.open("a") as file:
        file.write(": 2}")
    assert follower.ids() == []
    with log.open("a") as file:
        file.write("\n")
    assert follower.news() == [(2, 2)]


def test_rename_and_create(follower: Follower, tmp_path: Path) -> None:
    log = say(tmp_path / "in" / "a.log", 1, 2)
    assert follower.ids() == [1, 2]
    say(log, 3)
    log.rename(tmp_path / "in" / "a.log.1")
    say(log, 4, 5)
    assert sorted(follower.news()) == [(3, 3), (4, 1), (5, 2)]
    (tmp_path / "in" / "a.log.1").rename(tmp_path / "in" / "a.log.2")
    log.rename(tmp_path / "in" / "a.log.1")
    say(tmp_path / "in" / "a.log.1", 6)
    say(log, 7)
    assert sorted(follower.ids()) == [6, 7]


def test_truncation_starts_again(follower: Follower, tmp_path: Path) -> None:
    log = say(tmp_path / "in" / "a.log", 1, 2, 3)
    assert follower.ids() == [1, 2, 3]
    say(log, 4, mode="w")
    assert follower.ids() == [4]
    say(log, *range(100, 110), mode="w")
    assert follower.ids() == list(range(100, 110))


def test_a_replaced_file_has_another_origin(follower: Follower, tmp_path: Path) -> None:
    log = tmp_path / "in" / "a.log"
    for text in ("nonsense\nx\n", "nonsense\nyyy\n"):
        log.parent.mkdir(exist_ok=True)
        log.write_text(text)
        follower.news()
        log.unlink()
    assert len({(bad.origin, bad.position) for bad in follower.bad}) == 4


def test_a_file_renamed_between_finding_and_reading(follower: Follower, tmp_path: Path) -> None:
    log = say(tmp_path / "in" / "a.log", 1, 2)
    source = follower.source()
    end = source.latest_offset({"files": 0})
    log.rename(tmp_path / "in" / "a.log.1")
    say(log, 3)
    (partition,) = source.partitions({"files": 0}, end)
    rows = [r["id"] for b in source.read(partition, Read()) for r in b.to_pylist()]
    assert rows == [1, 2]


def test_lines_that_were_cut_off_before_they_were_read(follower: Follower, tmp_path: Path) -> None:
    log = say(tmp_path / "in" / "a.log", 1, 2)
    source = follower.source()
    end = source.latest_offset({"files": 0})
    say(log, mode="w")
    (partition,) = source.partitions({"files": 0}, end)
    with pytest.raises(Permanent, match="was modified after its discovery"):
        list(source.read(partition, Read()))
    source.config = source.config.model_copy(update={"on_changed": "continue"})
    assert list(source.read(partition, Read())) == []


def test_a_large_file_is_read_in_pieces(
    follower: Follower, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 1000)
    monkeypatch.setattr(segments, "CHUNK_BYTES", 300)
    say(tmp_path / "in" / "a.log", *range(500))
    source = follower.source()
    assert 4 < source.latest_offset({"files": 0})["files"] < 10
    assert follower.news() == [(i, i + 1) for i in range(500)]


@pytest.mark.slow
def test_the_log_does_not_grow_for_ever(
    follower: Follower, tmp_path: Path, monkeypatch: Any
) -> None:
    from penstock.connectors.files import log as module

    monkeypatch.setattr(module, "COMPACTION_BYTES", 4000)
    log = tmp_path / "in" / "a.log"
    say(tmp_path / "in" / "old.log", 1000)
    heard, other = [], follower.source()
    for at in range(200):
        say(log, at)
        if at == 100:
            log.rename(tmp_path / "in" / "a.log.1")
            say(log, 500)
        heard += follower.ids()
        source = follower.source()
        source.commit(follower.at)
        if at % 50 == 0:
            other.latest_offset({"files": 0})
            other.commit(follower.at)
    assert sorted(heard) == sorted([*range(200), 500, 1000])
    assert (tmp_path / "state" / "files.log").stat().st_size < 6000
    assert other.latest_offset(follower.at) == follower.at


def test_compressed_copies_are_left_alone(follower: Follower, tmp_path: Path) -> None:
    say(tmp_path / "in" / "a.log", 1)
    (tmp_path / "in" / "a.log.1.gz").write_bytes(b"\x1f\x8b")
    assert follower.ids() == [1]


def test_a_format_without_lines(follower: Follower, blocks: Any) -> None:
    source = follower.source()
    source.format = blocks
    with pytest.raises(PlanError, match="tail requires a format of lines"):
        source.check()


def test_an_unchanged_file_is_not_opened(follower: Follower, tmp_path: Path) -> None:
    log = say(tmp_path / "in" / "a.log", 1)
    follower.news()
    log.chmod(0)
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    assert follower.news() == []


@pytest.mark.quick(6)
@pytest.mark.parametrize("seed", range(30))
def test_anything_in_any_order(follower: Follower, tmp_path: Path, seed: int) -> None:
    """A writer that appends, tears lines and rotates; a reader that comes at any time."""
    chance = random.Random(seed)
    folder = tmp_path / "in"
    folder.mkdir()
    said, heard = 0, []
    torn = ""
    for _ in range(60):
        action = chance.choice(["say", "say", "tear", "rotate", "hear"])
        log = folder / "a.log"
        if action in ("say", "tear"):
            text = torn
            for _ in range(chance.randint(1, 5)):
                text += f'{{"id": {said}}}\n'
                said += 1
            cut = len(text) - chance.randint(1, 6) if action == "tear" else len(text)
            with log.open("a") as file:
                file.write(text[:cut])
            torn = text[cut:]
        elif action == "rotate" and not torn and log.exists():
            for at in range(8, 0, -1):
                if (folder / f"a.log.{at}").exists():
                    (folder / f"a.log.{at}").rename(folder / f"a.log.{at + 1}")
            log.rename(folder / "a.log.1")
        else:
            heard += follower.ids()
    with (folder / "a.log").open("a") as file:
        file.write(torn)
    heard += follower.ids()
    assert sorted(heard) == list(range(said))
