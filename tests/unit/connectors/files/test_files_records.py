"""Records of several lines in files, however the files are divided, polled and rotated."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig, discovery, segments
from penstock.core.errors import OptionError
from penstock.formats import text as text_format
from penstock.formats.text import Text, TextConfig
from penstock.sdk import Context, Read
from penstock.sdk.encoding import line_records, lines
from penstock.sdk.encoding.line_records import RecordStart

TEXT = Text(TextConfig(record_start="^[0-9]"))
LONG_AGO = 1_500_000_000_000_000_000


class Reader:
    """Reads on from where it was, as a new process each time."""

    def __init__(self, root: Path, pattern: str = "*", **options: Any) -> None:
        self.root, self.path, self.options = root, str(root / "in" / pattern), options
        self.at: Any = {"files": 0}
        self.bad: list[tuple[int, bytes | None, str]] = []
        (root / "in").mkdir(exist_ok=True)

    def source(self) -> FilesSource:
        config = FilesSourceConfig.model_validate({"path": self.path, **self.options})
        source = FilesSource(config, Context(state=self.root / "state"))
        source.format, source.columns = TEXT, pa.schema([("value", pa.string())])
        return source

    def news(self) -> list[tuple[int, str]]:
        """Lines and texts of the records that are new."""
        source = self.source()
        start, end = self.at, source.latest_offset(self.at)
        self.at = json.loads(json.dumps(end))
        read = Read(metadata=("position",))
        rows = [
            (row["position"], row["value"])
            for partition in source.partitions(start, end)
            for batch in pickle.loads(pickle.dumps(source)).read(partition, read)
            for row in batch.to_pylist()
        ]
        self.bad += [(bad.position, bad.payload, bad.error.code) for bad in read.bad]
        return rows


def records_of(content: bytes) -> list[tuple[int, str]]:
    """The records of a file of complete lines, and the number of the first line of each."""
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(content.decode().split("\n")[:-1], 1):
        if not found or re.match("[0-9]", line):
            found.append((number, []))
        found[-1][1].append(line)
    joined = [(number, "\n".join(each)) for number, each in found]
    return [(number, text) for number, text in joined if text.strip("\n")]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def age(root: Path) -> None:
    """Lets the last records of all growing files be complete."""
    for path in (root / "in").iterdir():
        os.utime(path, ns=(LONG_AGO, LONG_AGO))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in" / "a.log"


@pytest.fixture
def tail(tmp_path: Path, log: Path) -> Reader:
    return Reader(tmp_path, "a.log*", tail=True, order="name", idle_timeout="1 hour")


def test_a_record_is_complete_when_the_next_one_starts(tail: Reader, log: Path) -> None:
    append(log, b"1\n at")
    assert tail.news() == []
    append(log, b" x\n\n at y\n")
    assert tail.news() == []
    append(log, b"2")
    assert tail.news() == []
    append(log, b"\n at z\n3\n")
    assert tail.news() == [(1, "1\n at x\n\n at y"), (5, "2\n at z")]
    assert tail.news() == []


def test_the_last_record_is_complete_after_the_timeout(
    tail: Reader, log: Path, tmp_path: Path
) -> None:
    append(log, b"0\n1\n at x\n at")
    assert tail.news() == [(1, "0")]
    assert tail.news() == []
    age(tmp_path)
    assert tail.news() == [(2, "1\n at x")]
    assert tail.news() == []
    append(log, b" y\n at z\n2\n")
    assert tail.news() == [(4, " at y\n at z")]
    age(tmp_path)
    assert tail.news() == [(6, "2")]


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", range(15))
def test_a_record_without_end_is_one_dead_letter(
    seed: int, tail: Reader, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, limit = random.Random(seed), 100
    for module in (lines, line_records, segments):
        monkeypatch.setattr(module, "LINE_START", 10)
    monkeypatch.setattr(segments, "MAX_LENGTH", limit)
    limited = partial(RecordStart, max_length=limit)
    monkeypatch.setattr(text_format, "RecordStart", limited)
    small = partial(line_records.read_records, block=chance.choice([16, 1000]))
    monkeypatch.setattr(text_format, "read_records", small)
    monkeypatch.setattr(segments, "ENDLESS_RECORD_BYTES", 2 * limit + 8)
    monkeypatch.setattr(segments, "SEGMENT_BYTES", chance.choice([1, 300, 1 << 20]))
    monkeypatch.setattr(segments, "CHUNK_BYTES", chance.choice([1, 20, 1 << 20]))
    content, found = b"", []
    for number in range(12):
        piece = b"%d\n" % number + b" at x\n" * chance.choice([0, 3, 30, 200])
        piece += chance.choice([b"", b"", b"x" * 300 + b"\n", b"7" + b"x" * 300 + b"\n"])
        content += piece
        while piece:
            size = chance.randrange(1, 120)
            append(log, piece[:size])
            piece = piece[size:]
            found += tail.news()
    age(tmp_path)
    found += tail.news()
    expected = records_of(content)
    assert found == [(line, text) for line, text in expected if len(text) <= limit]
    assert [(line, code) for line, _, code in tail.bad] == [
        (line, "too-large") for line, text in expected if len(text) > limit
    ]


@pytest.mark.parametrize("extension", ["", ".gz"])
def test_bounded_files_end_their_last_record(
    extension: str, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "LARGE_FILE_BYTES", 0)
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 10)
    monkeypatch.setattr(segments, "CHUNK_BYTES", 10)
    content = b"before\n" + b"".join(b"%d\n at x\n\n" % number for number in range(9)) + b"9\n at"
    path = Path(f"{log}{extension}")
    path.write_bytes(gzip.compress(content) if extension else content)
    reader = Reader(tmp_path)
    assert reader.news() == records_of(content + b"\n")
    assert reader.at["files"] > 3 or extension


def test_the_end_of_a_damaged_file_is_no_record(tmp_path: Path, log: Path) -> None:
    content = b"".join(
        b"%d\n at x\n" % chance for chance in random.Random(1).choices(range(9**9), k=2000)
    )
    Path(f"{log}.gz").write_bytes(gzip.compress(content)[:-2000])
    reader = Reader(tmp_path)
    found = reader.news()
    assert found == records_of(content)[: len(found)] and len(found) > 10
    (line, payload, code), rest = reader.bad
    assert (line, code) == (2 * len(found) + 1, "cut-off")
    assert payload and content.split(b"\n")[line - 1] == payload.split(b"\n")[0]
    assert rest[1:] == (None, "corrupt-file")


def test_a_timeout_needs_records_of_several_lines(tmp_path: Path) -> None:
    source = Reader(tmp_path, tail=True, idle_timeout="1s").source()
    source.check_format()
    source.format = Text(TextConfig())
    with pytest.raises(OptionError, match="idle_timeout is for records of several lines"):
        source.check_format()
    with pytest.raises(ValueError, match="idle_timeout requires tail"):
        FilesSourceConfig.model_validate({"path": "a.log", "idle_timeout": "1s"})
