"""The source of files: which, in what order, from where on, and what if they are broken."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import structlog
from pydantic import ValidationError

from option_errors import Case, assert_option_error
from penstock.connectors.files import FilesSource, FilesSourceConfig, local, pace
from penstock.connectors.files.patterns import compile_pattern
from penstock.core.errors import Permanent, PlanError, StateError, Transient
from penstock.sdk import Context, Read

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


@pytest.fixture
def make(tmp_path: Path, lines: Any) -> Any:
    def make(path: Any = "in", **options: Any) -> FilesSource:
        state = options.pop("state", tmp_path / "state")
        paths = [
            str(tmp_path / p) if "://" not in p else p
            for p in ([path] if isinstance(path, str) else path)
        ]
        config = FilesSourceConfig.model_validate({"path": paths, **options})
        source = FilesSource(config, Context(state=state, base=tmp_path))
        source.format = lines
        source.columns = SCHEMA
        return source

    return make


@pytest.fixture
def put(tmp_path: Path) -> Any:
    def put(name: str, *ids: int, mode: str = "w", end: str = "\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as file:
            file.write("".join(json.dumps({"id": i, "v": f"v{i}"}) + end for i in ids))
        return path

    return put


def drain(
    source: FilesSource, start: Any = None, read: Read | None = None
) -> tuple[list[Any], Any]:
    """All rows from a position on, batch by batch, each range read twice."""
    at = json.loads(json.dumps(start if start is not None else source.initial_offset()))
    rows: list[Any] = []
    end = source.latest_offset(at)
    while at != end:
        stop = json.loads(json.dumps(source.limit_batch(at, end)))
        assert stop["files"] > at["files"]
        got = ranged(source, at, stop, read)
        assert ranged(source, at, stop) == [{k: r[k] for k in ("id", "v")} for r in got]
        rows += got
        at = stop
    return rows, at


def ranged(source: FilesSource, start: Any, end: Any, read: Read | None = None) -> list[Any]:
    read = read or Read()
    copy = pickle.loads(pickle.dumps(source))
    return [
        row
        for partition in source.partitions(start, end)
        for batch in copy.read(pickle.loads(pickle.dumps(partition)), read)
        for row in batch.to_pylist()
    ]


def ids(rows: list[Any]) -> list[int]:
    return [row["id"] for row in rows]


def test_a_directory_with_all_below_it(make: Any, put: Any) -> None:
    put("in/a.jsonl", 1, 2)
    put("in/deep/er/b.jsonl", 3)
    put("in/.hidden.jsonl", 9)
    put("in/_SUCCESS", 9)
    put("in/.git/x.jsonl", 9)
    put("in/_tmp/x.jsonl", 9)
    assert ids(drain(make(order="name"))[0]) == [1, 2, 3]


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("in/*.jsonl", [1]),
        ("in/**/*.jsonl", [1, 2, 3]),
        ("in/*/b.jsonl", [2]),
        ("in/[ab].jsonl", [1]),
        ("in/?.jsonl", [1]),
        ("in/x/**", [2, 3]),
        ("in/.*.jsonl", [9]),
        ("in/[!b]*", [1]),
        ("in/**/c.*", [3]),
        (["in/a.jsonl", "in/x/b.jsonl", "in/*.jsonl"], [1, 2]),
    ],
)  # fmt: skip
def test_patterns(make: Any, put: Any, pattern: Any, expected: list[int]) -> None:
    put("in/a.jsonl", 1)
    put("in/x/b.jsonl", 2)
    put("in/x/y/c.jsonl", 3)
    put("in/.h.jsonl", 9)
    assert ids(drain(make(pattern, order="name"))[0]) == expected


def test_a_name_with_brackets_is_itself(make: Any, put: Any) -> None:
    put("in/data[1].jsonl", 1)
    assert ids(drain(make("in/data[1].jsonl"))[0]) == [1]


def test_odd_names(make: Any, put: Any) -> None:
    for at, name in enumerate(["a b", "ü", "😀", "a#b", "a%20b", "k=v=w", "it's"]):
        put(f"in/{name}.jsonl", at)
    put("in/" + os.fsdecode(b"\xff.jsonl"), 7)
    read = Read(metadata=("name",))
    rows, _ = drain(make(), read=read)
    assert sorted(ids(rows)) == list(range(8))
    assert r"\xff.jsonl" in {row["name"] for row in rows}


def test_a_url(make: Any, put: Any, tmp_path: Path) -> None:
    put("in/a.jsonl", 1)
    assert ids(drain(make(f"file://{tmp_path}/in/*.jsonl"))[0]) == [1]


def test_an_unknown_scheme(make: Any) -> None:
    with pytest.raises(PlanError, match="s4"):
        make("s4://x/y").initial_offset() and drain(make("s4://x/y"))


def test_order(make: Any, put: Any) -> None:
    for name, number, time in (("b", 1, 100), ("a", 2, 300), ("c", 3, 200)):
        os.utime(put(f"in/{name}.jsonl", number), (time, time))
    assert ids(drain(make())[0]) == [1, 3, 2]
    assert ids(drain(make(order="name", state=None))[0]) == [2, 1, 3]


def test_offset_identifies_the_files_before_it(make: Any, put: Any, tmp_path: Path) -> None:
    """Logs of other files have other offsets, also of the same number of files."""

    def offsets(*names: str, state: str) -> list[Any]:
        for path in (tmp_path / "in").glob("*"):
            path.unlink()
        found: list[Any] = [{"files": 0}]
        for name in names:
            put(f"in/{name}.jsonl", 1)
            found.append(make(state=tmp_path / state).latest_offset(found[-1]))
        return found

    first = offsets("a", "b", state="one")
    assert [offset["files"] for offset in first] == [0, 1, 2]
    again = make(state=tmp_path / "one")
    assert again.latest_offset(first[2]) == first[2]
    assert again.latest_offset({"files": 2}) == {"files": 2}  # of an earlier version
    assert again.limit_batch({"files": 0}, first[2]) == first[2]
    assert again.limit_batch({"files": 0}, first[1]) == first[1]
    assert again.min_offset(first[1], first[2]) == again.min_offset(*first[:0:-1]) == first[1]
    other = offsets("x", "b", state="two")
    assert other[2]["files"] == 2 and other[2] != first[2]


def test_limits(make: Any, put: Any, tmp_path: Path) -> None:
    for at in range(5):
        put(f"in/{at}.jsonl", at)
    source = make(max_files=2, order="name")
    end = source.latest_offset(source.initial_offset())
    assert source.limit_batch({"files": 0}, end)["files"] == 2
    assert source.limit_batch({"files": 4}, end) == end
    small = make(max_size=1)
    assert small.limit_batch({"files": 0}, end)["files"] == 1
    assert source.lag({"files": 0}, end) == sum(
        f.stat().st_size for f in (tmp_path / "in").iterdir()
    )


def test_bounded_ends_with_what_was_there(make: Any, put: Any) -> None:
    put("in/a.jsonl", 1)
    source = make()
    assert source.is_bounded()
    _, at = drain(source)
    put("in/b.jsonl", 2)
    assert source.latest_offset(at) == at
    assert ids(drain(make(), at)[0]) == [2]


def test_watch_picks_up_new_files_and_resumes(make: Any, put: Any) -> None:
    source = make(watch=True)
    assert not source.is_bounded()
    rows, at = drain(source)
    assert rows == []
    put("in/a.jsonl", 1)
    rows, at = drain(source, at)
    assert ids(rows) == [1]
    put("in/b.jsonl", 2)
    rows, later = drain(make(watch=True), at)
    assert ids(rows) == [2]
    assert ids(ranged(make(watch=True), {"files": 0}, later)) == [1, 2]


def test_a_torn_log_line_is_cut(make: Any, put: Any, tmp_path: Path) -> None:
    put("in/a.jsonl", 1)
    _, at = drain(make(watch=True))
    log = tmp_path / "state" / "files.log"
    with log.open("ab") as file:
        file.write(b'{"n": 1, "path": "/x')
    put("in/b.jsonl", 2)
    assert ids(drain(make(watch=True), at)[0]) == [2]
    assert log.read_bytes().count(b"\n") == 2


def test_two_queries_share_the_log(make: Any, put: Any) -> None:
    one, two = make(watch=True), make(watch=True)
    put("in/a.jsonl", 1)
    _, at_one = drain(one)
    put("in/b.jsonl", 2)
    rows, at_two = drain(two)
    assert sorted(ids(rows)) == [1, 2]
    put("in/c.jsonl", 3)
    assert ids(drain(one, at_one)[0]) == [2, 3]
    assert ids(drain(two, at_two)[0]) == [3]


def test_a_missing_log_is_an_error(make: Any, put: Any, tmp_path: Path) -> None:
    put("in/a.jsonl", 1)
    _, at = drain(make())
    (tmp_path / "state" / "files.log").unlink()
    with pytest.raises(StateError, match="expected files 0 to 1 in the discovery log") as caught:
        make().partitions({"files": 0}, at)
    assert "found files 0 to 0" in caught.value.message
    assert caught.value.detail == str(tmp_path / "state" / "files.log")
    assert caught.value.hint == "Reset the state with --fresh."


def test_a_corrupt_log_is_an_error(make: Any, put: Any, tmp_path: Path) -> None:
    put("in/a.jsonl", 1)
    drain(make())
    (tmp_path / "state" / "files.log").write_text("nonsense\n")
    with pytest.raises(StateError, match="the discovery log is corrupt") as caught:
        make().latest_offset({"files": 0})
    assert str(tmp_path / "state" / "files.log") in (caught.value.detail or "")
    assert caught.value.hint == "Reset the state with --fresh."


def test_nothing_there(make: Any, put: Any) -> None:
    put("in/flights.jsonl", 1)
    with pytest.raises(Permanent) as caught:
        make("in/flight.jsonl").latest_offset({"files": 0})
    assert caught.value.hint == 'did you mean "flights.jsonl"?'
    with pytest.raises(Permanent) as caught:
        make("in/*.csv").check()
    assert "flights.jsonl" in str(caught.value.hint)
    with pytest.raises(Permanent) as caught:
        make("inn/*.csv").check()
    assert caught.value.hint == 'did you mean "in"?'
    with pytest.raises(Transient, match="could not find files"):
        make("in/*.csv", watch=True).check()


def test_min_age(make: Any, put: Any) -> None:
    old = put("in/a.jsonl", 1)
    put("in/b.jsonl", 2)
    os.utime(old, (1, 1))
    assert ids(drain(make(min_age="1 hour", watch=True))[0]) == [1]


def test_a_changed_file_is_an_error(make: Any, put: Any) -> None:
    put("in/a.jsonl", 1)
    source = make()
    end = source.latest_offset({"files": 0})
    put("in/a.jsonl", 1, 2)
    with pytest.raises(Permanent) as caught:
        ranged(source, {"files": 0}, end)
    assert caught.value.code == "file-changed"
    assert ids(ranged(make(on_changed="continue"), {"files": 0}, end)) == [1, 2]


def test_a_missing_file_is_an_error(make: Any, put: Any) -> None:
    put("in/a.jsonl", 1)
    gone = put("in/b.jsonl", 2)
    source = make(order="name")
    end = source.latest_offset({"files": 0})
    gone.unlink()
    with pytest.raises(Permanent) as caught:
        ranged(source, {"files": 0}, end)
    assert caught.value.code == "missing-file"
    assert ids(ranged(make(on_missing="continue"), {"files": 0}, end)) == [1]


def test_metadata(make: Any, put: Any, tmp_path: Path) -> None:
    path = put("in/a.jsonl", 1, 2)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    source = make()
    read = Read(metadata=("position", "path", "name", "size", "modified"))
    rows, _ = drain(source, read=read)
    assert [r["position"] for r in rows] == [1, 2]
    assert rows[0]["path"] == str(path)
    assert rows[0]["name"] == "a.jsonl"
    assert rows[0]["size"] == path.stat().st_size
    assert rows[0]["modified"].isoformat() == "2023-11-14T22:13:20+00:00"


def test_hive_directories_are_columns(make: Any, put: Any) -> None:
    put("in/year=2024/v=a%2Fb/a.jsonl", 1)
    put("in/year=2025/v=__HIVE_DEFAULT_PARTITION__/a.jsonl", 2)
    source = make(order="name")
    source.columns = pa.schema([("year", pa.int32()), ("id", pa.int64()), ("v", pa.string())])
    rows = ranged(source, {"files": 0}, source.latest_offset({"files": 0}))
    assert [(r["year"], r["id"], r["v"]) for r in rows] == [(2024, 1, "a/b"), (2025, 2, None)]
    assert source.infer_schema() == pa.schema(
        [("id", pa.int64()), ("v", pa.string()), ("year", pa.int64())]
    )


def test_small_files_are_read_together_large_ones_are_not(
    make: Any, put: Any, monkeypatch: Any
) -> None:
    from penstock.connectors.files import source as module

    monkeypatch.setattr(module, "PARTITION_BYTES", 50)
    for at in range(6):
        put(f"in/{at}.jsonl", at)
    put("in/9.jsonl", *range(100, 120))
    source = make(order="name")
    shares = source.partitions({"files": 0}, source.latest_offset({"files": 0}))
    assert [len(share) for share in shares] == [2, 2, 2, 1]


def test_a_large_file_is_read_in_pieces(make: Any, put: Any, monkeypatch: Any) -> None:
    from penstock.connectors.files import discovery, segments
    from penstock.connectors.files import source as module

    monkeypatch.setattr(segments, "SEGMENT_BYTES", 500)
    monkeypatch.setattr(discovery, "LARGE_FILE_BYTES", 1000)
    monkeypatch.setattr(segments, "CHUNK_BYTES", 70)
    monkeypatch.setattr(module, "PARTITION_BYTES", 1)
    path = put("in/a.jsonl", *range(200))
    path.write_bytes(path.read_bytes()[:-1])
    source = make(after_read="delete")
    end = source.latest_offset({"files": 0})
    assert len(source.partitions({"files": 0}, end)) == end["files"] > 5
    rows = ranged(source, {"files": 0}, end, Read(metadata=("position",)))
    assert [(r["id"], r["position"]) for r in rows] == [(i, i + 1) for i in range(200)]
    source.commit({"files": 2})
    assert path.exists()
    source.commit(end)
    assert not path.exists()


COMPRESS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def compressed(codec: str, data: bytes) -> bytes:
    if codec in COMPRESS:
        return COMPRESS[codec](data)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, {"zst": "zstd"}.get(codec, codec)) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.quick(2)
@pytest.mark.parametrize("codec", ["gz", "bz2", "xz", "zst", "lz4"])
def test_compression(make: Any, tmp_path: Path, codec: str) -> None:
    data = b"".join(b'{"id": %d, "v": "x"}\n' % i for i in range(10_000))
    (tmp_path / "in").mkdir()
    whole = compressed(codec, data[: len(data) // 2]) + compressed(codec, data[len(data) // 2 :])
    (tmp_path / "in" / f"a.jsonl.{codec}").write_bytes(whole)
    assert ids(drain(make())[0]) == list(range(10_000))


@pytest.mark.quick(1)
@pytest.mark.parametrize("codec", ["gz", "bz2", "xz", "zst", "lz4"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "garbage"])
def test_a_damaged_file_is_one_dead_letter(
    make: Any, tmp_path: Path, codec: str, damage: str
) -> None:
    data = b"".join(
        b'{"id": %d, "v": "%s"}\n' % (i, os.urandom(10).hex().encode()) for i in range(20_000)
    )
    whole = bytearray(compressed(codec, data))
    if damage == "cut":
        del whole[len(whole) // 2 :]
    elif damage == "flipped":
        whole[len(whole) // 2] ^= 0xFF
    else:
        whole = bytearray(b"this is not compressed at all")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"a.jsonl.{codec}").write_bytes(whole)
    source = make()
    end = source.latest_offset({"files": 0})
    first, second = Read(), Read()
    rows = ranged(source, {"files": 0}, end, first)
    assert ranged(source, {"files": 0}, end, second) == rows
    bad = [b for b in first.bad if b.error.code == "corrupt-file"]
    assert [(b.origin, b.position, b.error.code) for b in first.bad] == [
        (b.origin, b.position, b.error.code) for b in second.bad
    ]
    if damage == "flipped" and not bad:
        assert codec in ("zst", "lz4"), "only these have no checksum"
        return
    (letter,) = bad
    assert letter.origin.endswith(f"a.jsonl.{codec}")
    if damage == "garbage":
        assert (rows, letter.position) == ([], 1)
    elif damage == "cut":
        assert len(rows) < 20_000
        assert rows or codec in ("bz2", "xz"), "only these have blocks as large as this file"
        assert ids(rows) == list(range(len(rows)))
        assert letter.position == len(rows) + 1


def test_a_bad_line_is_one_record(make: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"id": 1}\nnonsense\n{"id": 3}\n')
    source, read = make(), Read()
    assert ids(ranged(source, {"files": 0}, source.latest_offset({"files": 0}), read)) == [1, 3]
    (bad,) = read.bad
    assert (bad.payload, bad.position) == (b"nonsense", 2)


def test_a_cut_binary_file(make: Any, tmp_path: Path, blocks: Any) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.blocks"
    with pa.ipc.new_stream(str(path), SCHEMA) as stream:
        for at in range(4):
            stream.write_batch(pa.record_batch([[at], [f"v{at}"]], schema=SCHEMA))
    path.write_bytes(path.read_bytes()[:-60])
    source, read = make(), Read()
    source.format = blocks
    rows = ranged(source, {"files": 0}, source.latest_offset({"files": 0}), read)
    assert ids(rows) == [0, 1, 2]
    assert [(b.position, b.error.code) for b in read.bad] == [(4, "corrupt-file")]


def test_after(make: Any, put: Any, tmp_path: Path) -> None:
    put("in/a.jsonl", 1)
    source = make(after_read="delete", watch=True)
    _, at = drain(source)
    changed = put("in/b.jsonl", 2)
    _, later = drain(source, at)
    changed.write_text("changed")
    source.commit(later)
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["b.jsonl"]
    source.commit(later)
    put("in/c.jsonl", 3)
    moving = make("in/c.jsonl", after_read={"move": str(tmp_path / "done")}, state=None)
    _, end = drain(moving)
    moving.commit(end)
    assert (tmp_path / "done" / "c.jsonl").exists()
    assert not (tmp_path / "in" / "c.jsonl").exists()


@pytest.mark.parametrize(
    "path, expected",
    [
        ("a.csv", "csv"), ("a.csv.gz", "csv"), ("d/*.jsonl.zst", "json"), ("a.ndjson", "json"),
        ("x.parquet", "parquet"), ("x.avro", "avro"), ("x.arrow", "arrow"), ("x.txt", "text"),
        ("d", None), ("d/*", None), ("x.unknown", None),
    ],
)  # fmt: skip
def test_the_format_by_the_extension(make: Any, path: str, expected: str | None) -> None:
    assert make(path).default_format() == expected


def test_infer(make: Any, put: Any) -> None:
    put("in/a.jsonl", 1)
    assert make().infer_schema() == SCHEMA


@pytest.mark.parametrize(
    "case",
    [
        ({"tail": True, "compression": "gzip"}, "tail", "tail requires uncompressed files"),
        ({"tail": True, "after_read": "delete"}, "after_read", "tail requires after_read: keep"),
        ({"path": []}, "path", "expected at least one path"),
        ({"max_files": 0}, "max_files", "greater than or equal to 1"),
        ({"order": "size"}, "order", "Input should be 'modified' or 'name'"),
    ],
)
def test_invalid_options(case: Case) -> None:
    assert_option_error(FilesSourceConfig, {"path": "x"}, case)


@pytest.mark.parametrize("name", ["in/[z-a].csv", "s3://b/[z-a].csv", "in/[!].csv].csv"])
def test_invalid_pattern_is_an_error_of_the_option(name: str) -> None:
    with pytest.raises(ValidationError) as raised:
        FilesSourceConfig.model_validate({"path": name})
    error = raised.value.errors()[0]
    assert error["loc"][0] == "path"
    assert "expected a set of characters" in error["msg"]


@pytest.mark.parametrize(
    ("pattern", "name"), [("[[]x", "[x"), ("[a&&b]x", "&x"), ("[a||b]x", "|x"), ("[~~]x", "~x")]
)
def test_sets_of_special_characters(pattern: str, name: str) -> None:
    assert compile_pattern(pattern).match(name)


def test_named_pipes_are_skipped_or_an_error(make: Any, put: Any, tmp_path: Path) -> None:
    put("in/a.jsonl", 1)
    os.mkfifo(tmp_path / "in" / "b.jsonl")
    os.mkfifo(tmp_path / "in" / "b.pipe")
    with structlog.testing.capture_logs() as logs:
        assert ids(drain(make("in/*.jsonl"))[0]) == [1]
        assert ids(drain(make("in/*.jsonl", state=tmp_path / "other"))[0]) == [1]
    (warning,) = [entry for entry in logs if entry["log_level"] == "warning"]
    assert "b.jsonl: expected a regular file, found a named pipe" in warning["event"]
    with pytest.raises(Permanent, match="expected a regular file, found a named pipe"):
        make("in/b.jsonl").check()


def test_known_files_are_listed_without_their_status(
    make: Any, put: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("in/a.jsonl", 1)
    put("in/b.txt", 2)
    source = make("in/*.jsonl", watch=True)
    _, offset = drain(source)
    put("in/c.jsonl", 3)
    listed: list[str] = []
    entry_of = local.regular_entry
    monkeypatch.setattr(
        local,
        "regular_entry",
        lambda child, *rest: listed.append(child.name) or entry_of(child, *rest),
    )
    assert ids(drain(source, offset)[0]) == [3]
    assert set(listed) == {"c.jsonl"}


def test_expensive_listings_are_rare(make: Any, put: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each listing takes a second of the processor, so the next one begins nine seconds later."""
    now, seconds = [100.0], count()
    clock = SimpleNamespace(monotonic=lambda: now[0], thread_time=lambda: float(next(seconds)))
    monkeypatch.setattr(pace, "time", clock)
    put("in/a.jsonl", 1)
    source = make(watch=True)
    _, offset = drain(source)
    put("in/b.jsonl", 2)
    now[0] += 8.9
    assert source.latest_offset(offset) == offset
    now[0] += 0.2
    assert ids(drain(source, offset)[0]) == [2]


def test_cheap_listings_have_no_pause(make: Any, put: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: 100.0, thread_time=lambda: 0.0)
    monkeypatch.setattr(pace, "time", clock)
    put("in/a.jsonl", 1)
    source = make(watch=True)
    _, offset = drain(source)
    put("in/b.jsonl", 2)
    assert ids(drain(source, offset)[0]) == [2]


def test_a_check_compares_headers_of_files_with_the_columns(make: Any, tmp_path: Path) -> None:
    from penstock.formats.csv import Csv, CsvConfig

    columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.string())])
    for day, header in enumerate(["id,name", "", "NAME,id,more", "id,nmae"]):
        path = tmp_path / "in" / f"day={day}" / "a.csv"
        path.parent.mkdir(parents=True)
        path.write_text(f"{header}\n1,x\n" if header else "")
    (tmp_path / "in" / "day=0" / "damaged.csv.gz").write_bytes(b"\x1f\x8b\x08")
    source = make(path=str(tmp_path / "in" / "**" / "*.csv*"), order="name")
    source.format, source.columns = Csv(CsvConfig()), columns
    with pytest.raises(Permanent, match=r'day=3/a\.csv: expected the column "name"') as raised:
        source.check()
    assert raised.value.hint is not None and 'did you mean "nmae"?' in raised.value.hint
    (tmp_path / "in" / "day=3" / "a.csv").unlink()
    source.check()


def test_a_pattern_selects_files_by_their_whole_relative_path(make: Any, put: Any) -> None:
    put("in/a/one.json", 1)
    put("in/a/one.json.old", 2)
    put("in/b/two.json", 3)
    rows, _ = drain(make(pattern=r"a/.*\.json"))
    assert [row["id"] for row in rows] == [1]


def test_a_pattern_is_a_regular_expression() -> None:
    with pytest.raises(ValidationError, match="invalid regular expression"):
        FilesSourceConfig.model_validate({"path": "in", "pattern": "("})
