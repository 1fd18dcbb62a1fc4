"""The sink of files: names, directories, rolling, lives, errors."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSink, FilesSinkConfig, FilesSource, FilesSourceConfig
from penstock.connectors.files import sink as module
from penstock.connectors.files.local import LocalStorage
from penstock.core.errors import Permanent, PlanError, StateError, Transient
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json.plain import JsonConfig, PlainJson
from penstock.sdk import BatchId, Context, Read

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


@pytest.fixture
def make(tmp_path: Path, lines: Any) -> Any:
    def make(node: str = "n", path: str = "out", **options: Any) -> FilesSink:
        where = path if "://" in path else str(tmp_path / path)
        config = FilesSinkConfig.model_validate({"path": where, **options})
        sink = FilesSink(config, Context("p", node))
        sink.format = lines
        return sink

    return make


def write(sink: FilesSink, number: int, *rows: Any, query: str = "q", partition: int = 0) -> Any:
    """One partition of a batch; gives its receipt."""
    rows_ = [row if isinstance(row, dict) else {"id": row, "v": f"v{row}"} for row in rows]
    writer = sink.writer(sink.open(), BatchId(query, number), partition, SCHEMA)
    writer.write(pa.RecordBatch.from_pylist(rows_, schema=SCHEMA))
    return json.loads(json.dumps(writer.commit()))


def batch(sink: FilesSink, number: int, *rows: Any, query: str = "q") -> None:
    sink.commit(BatchId(query, number), [write(sink, number, *rows, query=query)])


def seen(root: Path, pattern: str = "**/*.jsonl*") -> list[int]:
    """Ids that a reader of the directory sees, in the order of file names."""
    out = []
    for path in sorted(root.glob(pattern)):
        packed = path.read_bytes()
        content = gzip.decompress(packed) if path.suffix == ".gz" else packed
        out += [json.loads(line)["id"] for line in content.splitlines()]
    return out


def names(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*.*") if ".penstock" not in p.parts)


def test_nothing_is_seen_before_the_batch_is_finished(make: Any, tmp_path: Path) -> None:
    sink = make()
    receipt = write(sink, 0, 1, 2)
    assert seen(tmp_path / "out") == []
    assert not list((tmp_path / "out").rglob("*.jsonl"))
    sink.commit(BatchId("q", 0), [receipt])
    assert seen(tmp_path / "out") == [1, 2]


def test_a_batch_written_twice_is_there_once(make: Any, tmp_path: Path) -> None:
    sink = make()
    batch(sink, 0, 1)
    batch(sink, 1, 2)
    batch(make(), 1, 2)
    batch(make(), 0, 1)
    assert seen(tmp_path / "out") == [1, 2]
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_finish_twice_with_the_same_receipts(make: Any, tmp_path: Path) -> None:
    sink = make()
    receipts = [write(sink, 0, 1), write(sink, 0, 2, partition=1)]
    sink.commit(BatchId("q", 0), receipts)
    sink.commit(BatchId("q", 0), receipts)
    assert seen(tmp_path / "out") == [1, 2]


def test_a_fresh_life_starts_at_batch_zero(make: Any, tmp_path: Path) -> None:
    for number in range(3):
        batch(make(), number, number)
    fresh = make()
    fresh.recover()
    batch(fresh, 0, 100, query="another")
    assert sorted(seen(tmp_path / "out")) == [0, 1, 2, 100]


def test_two_sinks_in_one_directory(make: Any, tmp_path: Path) -> None:
    one, two = make("one"), make("two")
    receipt = write(one, 0, 1)
    two.recover()
    batch(two, 0, 2)
    one.commit(BatchId("q", 0), [receipt])
    assert sorted(seen(tmp_path / "out")) == [1, 2]


def test_orphans_are_removed(make: Any, tmp_path: Path) -> None:
    write(make(), 0, 1)
    assert list((tmp_path / "out").rglob("*.tmp"))
    make().recover()
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_abort(make: Any, tmp_path: Path) -> None:
    sink = make(partition_by=["v"])
    writer = sink.writer(None, BatchId("q", 0), 0, SCHEMA)
    writer.write(
        pa.RecordBatch.from_pylist([{"id": 1, "v": "x"}, {"id": 2, "v": "y"}], schema=SCHEMA)
    )
    writer.abort()
    writer.abort()
    assert not list((tmp_path / "out").rglob("*.tmp"))
    receipt = sink.writer(None, BatchId("q", 0), 0, SCHEMA).commit()
    assert receipt["files"] == []


def test_bad_rows_are_diverted(make: Any, tmp_path: Path) -> None:
    sink = make(partition_by=["id"])
    writer = sink.writer(None, BatchId("q", 0), 0, SCHEMA)
    rows = [{"id": 1, "v": "a"}, {"id": 2, "v": "bad"}, {"id": 1, "v": "bad"}, {"id": 2, "v": "d"}]
    failures = writer.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    assert [failure[0] for failure in failures] == [1, 2]
    sink.commit(BatchId("q", 0), [writer.commit()])
    values = [p.read_text() for p in sorted((tmp_path / "out").rglob("*.jsonl"))]
    assert values == ['{"v": "a"}\n', '{"v": "d"}\n']


def test_partition_by_and_back(make: Any, tmp_path: Path, lines: Any) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("day", pa.date32())])
    odd = ["a", "a/b", "", None, "k=v", "ü 😀", "100%", ".", "..", "a:b", "*"]
    rows = [{"id": i, "v": v, "day": None if i == 3 else i} for i, v in enumerate(odd)]
    sink = make(partition_by=["v", "day"])
    writer = sink.writer(None, BatchId("q", 0), 0, schema)
    writer.write(pa.RecordBatch.from_pylist(rows, schema=schema))
    sink.commit(BatchId("q", 0), [writer.commit()])
    source = FilesSource(FilesSourceConfig.model_validate({"path": str(tmp_path / "out")}))
    source.format, source.columns = lines, schema
    start = source.initial_offset()
    read = [
        row
        for part in source.partitions(start, source.latest_offset(start))
        for got in source.read(part, Read())
        for row in got.to_pylist()
    ]
    back = {row["id"]: row["v"] for row in read}
    assert back == dict(enumerate(odd))
    assert {row["id"] for row in read if row["day"] is None} == {3}


@pytest.mark.slow
def test_many_directories(make: Any, tmp_path: Path) -> None:
    sink = make(partition_by=["id"])
    writer = sink.writer(None, BatchId("q", 0), 0, SCHEMA)
    rows = pa.RecordBatch.from_pylist([{"id": i, "v": "x"} for i in range(250)], schema=SCHEMA)
    writer.write(rows)
    writer.write(rows)
    sink.commit(BatchId("q", 0), [writer.commit()])
    found = list((tmp_path / "out").rglob("*.jsonl"))
    assert sum(len(p.read_text().splitlines()) for p in found) == 500
    assert len({p.parent for p in found}) == 250


def test_an_unknown_column(make: Any) -> None:
    with pytest.raises(PlanError) as caught:
        make(partition_by=["ids"]).writer(None, BatchId("q", 0), 0, SCHEMA)
    assert caught.value.hint == 'did you mean "id"?'
    with pytest.raises(PlanError, match="partition_by contains all columns"):
        make(partition_by=["id", "v"]).writer(None, BatchId("q", 0), 0, SCHEMA)


def test_large_partitions_are_split(make: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 100)
    sink = make()
    writer = sink.writer(None, BatchId("q", 0), 3, SCHEMA)
    for at in range(10):
        writer.write(pa.RecordBatch.from_pylist([{"id": at, "v": "x" * 40}], schema=SCHEMA))
    sink.commit(BatchId("q", 0), [writer.commit()])
    assert len(names(tmp_path / "out")) == 5
    assert sorted(seen(tmp_path / "out")) == list(range(10))


def test_names(make: Any, tmp_path: Path) -> None:
    sink = make(compression="gzip", prefix="late", partition_by=["v"])
    batch(sink, 7, 1)
    (name,) = names(tmp_path / "out")
    area = next((tmp_path / "out" / ".penstock").glob("*/*")).name
    assert name == f"v=v1/late-{area}-00000007-00000.jsonl.gz"
    assert seen(tmp_path / "out") == [1]


def test_rolling_by_size(make: Any, tmp_path: Path) -> None:
    size = len(b'{"id": 0, "v": "v0"}\n')
    sink = make(roll={"max_size": size * 3})
    for at in range(7):
        batch(sink, at, at)
        assert len(seen(tmp_path / "out")) == (at + 1) // 3 * 3
    make(roll={"max_size": size * 3}).recover()
    assert len(names(tmp_path / "out")) == 2
    sink.complete()
    assert seen(tmp_path / "out") == list(range(7))
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_rolling_by_time(make: Any, tmp_path: Path, monkeypatch: Any) -> None:
    clock = [1000.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    sink = make(roll={"interval": "1 minute"})
    batch(sink, 0, 0)
    clock[0] += 59
    batch(sink, 1, 1)
    sink.tick()
    assert seen(tmp_path / "out") == []
    clock[0] += 6
    sink.tick()
    assert seen(tmp_path / "out") == [0, 1]
    batch(sink, 2, 2)
    clock[0] += 61
    batch(sink, 3, 3)
    assert seen(tmp_path / "out") == [0, 1, 2, 3]
    assert len(names(tmp_path / "out")) == 2


def test_rolling_rewrites_what_cannot_be_joined(make: Any, tmp_path: Path, blocks: Any) -> None:
    sink = make(roll={"max_size": "1 MB"})
    sink.format = blocks
    for at in range(5):
        batch(sink, at, at, at + 100)
    sink.complete()
    (path,) = (tmp_path / "out").rglob("*.blocks")
    assert len(pa.ipc.open_stream(str(path)).read_all()) == 10


@pytest.mark.parametrize(
    "options", [{"columns": ["id"]}, {"encoding": "utf-16"}, {"nulls": ["-"]}, {"comment": "#"}]
)
def test_rolling_rewrites_csv_as_it_was_written(
    make: Any, tmp_path: Path, options: dict[str, Any]
) -> None:
    sink = make(roll={"max_size": "1 MB"})
    sink.format = Csv(CsvConfig(**options))
    rows = [{"id": at, "v": value} for at in range(2) for value in (None, "-", "")]
    batch(sink, 0, *rows[:3])
    batch(sink, 1, *rows[3:])
    sink.complete()
    expected = io.BytesIO()
    sink.format.file_writer(expected, SCHEMA).write(pa.RecordBatch.from_pylist(rows, SCHEMA))
    (path,) = (tmp_path / "out").rglob("*.csv")
    assert path.read_bytes() == expected.getvalue()


def test_open_files_of_rolling_are_published_after_its_removal(make: Any, tmp_path: Path) -> None:
    batch(make(roll={"max_size": "1 MB"}), 0, 0)
    batch(make(), 1, 1)
    assert seen(tmp_path / "out") == [0, 1]


@pytest.mark.parametrize("before, after", [("blocks", "lines"), ("lines", "blocks")])
def test_staged_files_of_another_format_stay_as_they_are(
    make: Any, tmp_path: Path, request: Any, before: str, after: str
) -> None:
    sink = make(roll={"max_size": "1 MB"})
    for number, name in enumerate((before, before, after, after)):
        sink.format = request.getfixturevalue(name)
        batch(sink, number, number)
    sink.complete()
    assert seen(tmp_path / "out") == ([2, 3] if after == "lines" else [0, 1])
    tables = [pa.ipc.open_stream(str(path)).read_all() for path in tmp_path.rglob("*.blocks")]
    ids = sorted(id_ for table in tables for id_ in table.column("id").to_pylist())
    assert ids == ([0, 1] if before == "blocks" else [2, 3])


def test_a_url(make: Any, tmp_path: Path) -> None:
    batch(make(path=f"file://{tmp_path}/out"), 0, 1)
    assert seen(tmp_path / "out") == [1]


def test_a_damaged_ledger_is_an_error(make: Any, tmp_path: Path) -> None:
    batch(make(), 0, 1)
    next((tmp_path / "out").rglob("ledger.json")).write_text("{")
    with pytest.raises(StateError, match=r"ledger\.json is corrupt"):
        make().recover()


def test_a_place_that_cannot_be_written(make: Any, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(Permanent, match="cannot write to"):
        make().check()
    with pytest.raises(Permanent, match="cannot write to"):
        write(make(), 0, 1)


def test_a_full_disk_is_a_transient_error(make: Any) -> None:
    class Full(LocalStorage):
        def create(self, path: str) -> Any:
            return Path("/dev/full").open("wb", buffering=0)

    sink = make()
    sink.storage = Full()
    with pytest.raises(Transient) as caught:
        write(sink, 0, 1)
    assert caught.value.code == "disk-full"
    assert str(sink.config.path) in caught.value.message


def test_check(make: Any, tmp_path: Path) -> None:
    make(path="out/of/clicks").check()
    assert not [*tmp_path.iterdir()], "the check has left a directory"
    with pytest.raises(PlanError, match="expected a directory, found a pattern"):
        make(path="out/*.csv").check()
    sink = make(compression="gzip")
    sink.format.needs_seek = True
    with pytest.raises(PlanError, match="the format has internal compression"):
        sink.check()


def test_last_batch_of_an_older_ledger(make: Any, tmp_path: Path) -> None:
    sink = make()
    sink.commit(BatchId("q", 3, "abc"), [write(sink, 3, 1)])
    assert sink.last_batch("q") == BatchId("q", 3, "abc")
    (ledger,) = (tmp_path / "out").rglob("ledger.json")
    values = json.loads(ledger.read_text())
    del values["content"]
    ledger.write_text(json.dumps(values))
    assert sink.last_batch("q") == BatchId("q", 3)
    assert sink.last_batch("other") is None


def test_content_survives_the_roll_of_staged_parts(make: Any) -> None:
    sink = make(roll={"max_size": "1 GB"})
    sink.commit(BatchId("q", 0, "abc"), [write(sink, 0, 1)])
    sink.complete()
    assert sink.last_batch("q") == BatchId("q", 0, "abc")


TIMED = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("v", pa.string())])
TIMES = [1_767_323_045_999_999, -1, None]


def timed(sink: FilesSink) -> None:
    """Writes a row for each time as JSON."""
    sink.format = PlainJson(JsonConfig())
    rows = [{"id": index, "at": time, "v": "x"} for index, time in enumerate(TIMES)]
    writer = sink.writer(None, BatchId("q", 0), 0, TIMED)
    assert not writer.write(pa.RecordBatch.from_pylist(rows, schema=TIMED))
    sink.commit(BatchId("q", 0), [writer.commit()])


def test_directories_of_times(make: Any, tmp_path: Path) -> None:
    pattern = "%Y/%m/%d/%H-%M-%S"
    sink = make(partition_time={"column": "at", "pattern": pattern}, partition_by=["v"])
    timed(sink)
    found = {str(Path(name).parent) for name in names(tmp_path / "out")}
    assert found == {
        "2026/01/02/03-04-05/v=x", "1969/12/31/23-59-59/v=x", "__HIVE_DEFAULT_PARTITION__/v=x",
    }  # fmt: skip
    (path,) = (tmp_path / "out" / "2026").rglob("*.jsonl")
    assert json.loads(path.read_text()) == {"id": 0, "at": "2026-01-02T03:04:05.999999Z"}


def test_the_time_of_directories_may_be_left_out_of_files(make: Any, tmp_path: Path) -> None:
    timed(make(partition_time={"column": "at", "pattern": "%Y", "stored": False}))
    (path,) = (tmp_path / "out" / "2026").iterdir()
    assert json.loads(path.read_text()) == {"id": 0, "v": "x"}


def test_an_unknown_column_of_directories(make: Any) -> None:
    sink = make(partition_time={"column": "a", "pattern": "%Y"})
    with pytest.raises(PlanError, match="in partition_time"):
        sink.writer(None, BatchId("q", 0), 0, TIMED)
    with pytest.raises(PlanError, match=r'partition_time\.column: unknown column "a"'):
        sink.check_schema(TIMED)
    sink = make(partition_time={"column": "v", "pattern": "%Y"})
    with pytest.raises(PlanError, match='column "v" has the type STRING'):
        sink.check_schema(TIMED)


def test_a_suffix_of_names(make: Any, tmp_path: Path) -> None:
    """Files with this suffix are merged by their content, also after a change of the content."""
    options: dict[str, Any] = {"suffix": ".json", "roll": {"interval": "0s"}}
    staged = make(compression="gzip", suffix=".json", roll={"interval": "1 hour"})
    batch(staged, 0, 1)
    sink = make(**options)
    batch(sink, 1, 2)
    sink.complete()
    found = names(tmp_path / "out")
    assert [name[-5:] for name in found] == [".json", ".json"]
    contents = [(tmp_path / "out" / name).read_bytes() for name in found]
    texts = [gzip.decompress(c) if c[:2] == b"\x1f\x8b" else c for c in contents]
    assert [json.loads(text)["id"] for text in texts] == [1, 2]
