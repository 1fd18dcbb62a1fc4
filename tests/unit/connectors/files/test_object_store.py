"""Files in an object store: what the contracts do not ask."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import dataset
from pydantic import ValidationError

from penstock.connectors.files import FilesSink, FilesSource
from penstock.connectors.files.filesystem import open_storage
from penstock.connectors.files.object_store import ArrowStorage
from penstock.core.error_report import format_error
from penstock.core.errors import Permanent, PlanError, Transient
from penstock.sdk import Context, Read, object_store
from servers.s3 import S3, Bucket
from stored_files import ID, ROW, ids, make_sink, make_source, stop_and_continue, write

SECONDS = 20


@pytest.fixture
def source(bucket: Bucket, lines: Any) -> Callable[..., FilesSource]:
    return partial(make_source, bucket, lines)


@pytest.fixture
def sink(bucket: Bucket, lines: Any) -> Callable[..., FilesSink]:
    return partial(make_sink, bucket, lines)


@pytest.fixture
def shut(s3: S3) -> Iterator[None]:
    s3.gate.stop()
    yield
    s3.gate.start()


@pytest.fixture
def silent(s3: S3) -> Iterator[None]:
    s3.gate.pause()
    yield
    s3.gate.stop()
    s3.gate.resume()
    s3.gate.start()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("in", [1, 2, 3]),
        ("in/", [1, 2, 3]),
        ("in/a.jsonl", [1]),
        ("in/*.jsonl", [1]),
        ("in/?.jsonl", [1]),
        ("in/[ab].jsonl", [1]),
        ("in/*/*.jsonl", [2]),
        ("in/**/*.jsonl", [1, 2, 3]),
        ("i*/**", [1, 2, 3]),
        ("in/_done/*", [4]),
        ("*.jsonl", [5]),
    ],
)
def test_paths_and_patterns(source: Any, bucket: Bucket, path: str, found: list[int]) -> None:
    keys = ["in/a.jsonl", "in/x/b c=ü.jsonl", "in/x/y/c.jsonl", "in/_done/d.jsonl", "e.jsonl"]
    for number, key in enumerate(keys, 1):
        bucket.put(key, b'{"id": %d}\n' % number)
    assert sorted(ids(source(path))) == found


def test_several_paths(source: Any, bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("in/a", ROW)
    (tmp_path / "b").write_bytes(b'{"id": 2}\n')
    paths = [str(tmp_path), f"{bucket.url}/in"]
    assert sorted(ids(source(path=paths))) == [1, 2]


def test_compressed(source: Any, bucket: Bucket) -> None:
    bucket.put("in/a.jsonl.gz", gzip.compress(ROW * 1000))
    bucket.put("in/b.jsonl.zst", pa.compress(ROW * 10, "zstd", asbytes=True))
    assert len(ids(source())) == 1010


def test_growing(source: Any, bucket: Bucket) -> None:
    bucket.put("in/a", ROW)
    tailing = source(tail=True)
    start = tailing.latest_offset(tailing.initial_offset())
    bucket.put("in/a", ROW * 3)
    end = tailing.latest_offset(start)
    rows = [b for p in tailing.partitions(start, end) for b in tailing.read(p, Read())]
    assert sum(len(batch) for batch in rows) == 2


def test_after_delete(source: Any, bucket: Bucket) -> None:
    bucket.put("in/a", ROW)
    assert ids(source(after_read="delete")) == [1]
    assert bucket.names() == []


def test_after_move(source: Any, bucket: Bucket) -> None:
    bucket.put("in/a b", ROW)
    assert ids(source(after_read={"move": f"{bucket.url}/done"})) == [1]
    assert bucket.names() == ["done/a b"]
    assert bucket.get("done/a b") == ROW


def test_a_file_moves_within_its_file_system(source: Any) -> None:
    with pytest.raises(ValidationError, match="directory in the file system of path"):
        source(after_read={"move": "done"})


def test_a_file_that_changed(source: Any, bucket: Bucket) -> None:
    bucket.put("in/a", ROW)
    reading = source()
    start = reading.initial_offset()
    end = reading.latest_offset(start)
    bucket.put("in/a", ROW * 2)
    with pytest.raises(Permanent) as caught:
        [list(reading.read(p, Read())) for p in reading.partitions(start, end)]
    assert caught.value.code == "file-changed"


def test_directories_and_rolling(sink: Any, bucket: Bucket) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string())])
    writing = sink(partition_by=["day"], roll={"max_size": "100 B"})
    for number in range(8):
        rows = [{"id": number * 10 + at, "day": f"d {at % 2}/ü"} for at in range(10)]
        write(writing, number, rows, schema)
    names = bucket.names("out")
    assert 2 <= len(names) < 16
    writing.complete()
    system = open_storage(bucket.url, writing.config.storage)[0].system
    hive = dataset.partitioning(pa.schema([("day", pa.string())]), flavor="hive")
    found = dataset.dataset(
        f"{bucket.name}/out", filesystem=system, format="json", partitioning=hive
    ).to_table()
    assert sorted(found["id"].to_pylist()) == list(range(80))
    assert set(found["day"].to_pylist()) == {"d 0/ü", "d 1/ü"}


def test_no_directories_are_made(sink: Any, bucket: Bucket) -> None:
    write(sink(partition_by=["id"]), 0, [{"id": 1, "v": 1}], ID.append(pa.field("v", pa.int64())))
    pages = bucket.server.client.list_objects_v2(Bucket=bucket.name)
    visible = [each["Key"] for each in pages["Contents"] if not each["Key"].startswith("out/.")]
    assert len(visible) == 1 and visible[0].startswith("out/id=1/part-")


@pytest.mark.parametrize("at", range(12))
def test_stopped_at_any_change(sink: Any, bucket: Bucket, at: int) -> None:
    """The process ends before the change number `at`; the next one continues."""
    direct = {**bucket.server.storage, "endpoint_url": bucket.server.url}
    stop_and_continue(lambda: sink(storage=direct), at)
    assert sorted(bucket.get(name) for name in bucket.names()) == [b'{"id": 1}\n', b'{"id": 2}\n']


def test_a_server_that_is_down(source: Any, sink: Any, shut: None) -> None:
    for call in (lambda: ids(source()), lambda: write(sink(), 0, [{"id": 1}])):
        began = time.monotonic()
        with pytest.raises(Transient) as caught:
            call()
        assert time.monotonic() - began < SECONDS
        assert "Check that http://127.0.0.1:" in (caught.value.hint or "")


def test_a_server_that_does_not_answer(
    source: Any, silent: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "REQUEST_TIMEOUT_SECONDS", 1)
    began = time.monotonic()
    with pytest.raises(Transient, match="could not list files"):
        ids(source())
    assert time.monotonic() - began < SECONDS


def test_a_server_that_goes_down_while_a_file_is_read(source: Any, bucket: Bucket, s3: S3) -> None:
    bucket.put("in/a.jsonl", ROW * 3_000_000)
    reading = source()
    start = reading.initial_offset()
    [partition] = reading.partitions(start, reading.latest_offset(start))
    read = Read()
    rows = reading.read(partition, read)
    next(rows)
    s3.gate.stop()
    try:
        with pytest.raises(Transient, match="could not read"):
            list(rows)
    finally:
        s3.gate.start()
    assert not read.bad


@pytest.mark.parametrize("wrong", [{"secret_key": "no-such-secret"}, {"access_key": "nobody"}])
def test_wrong_keys(source: Any, sink: Any, s3: S3, wrong: dict[str, str]) -> None:
    auth = {**s3.storage["auth"], **wrong}
    storage = {**s3.storage, "auth": auth}
    calls = (
        lambda: ids(source(storage=storage)),
        source(storage=storage).check,
        source(storage=storage, watch=True).check,
        sink(storage=storage).check,
        sink(storage=storage).recover,
        lambda: write(sink(storage=storage), 0, [{"id": 1}]),
    )
    for call in calls:
        with pytest.raises(Permanent) as caught:
            call()
        assert caught.value.code == "authorization"
        assert "credentials" in (caught.value.hint or "")
        assert auth["secret_key"] not in format_error(caught.value)


def test_no_such_bucket(source: Any, sink: Any, bucket: Bucket) -> None:
    path = f"s3://{bucket.name[:-1]}/x"
    calls = (
        lambda: ids(source(path=path)),
        lambda: ids(source(path=path, watch=True)),
        source(path=path).check,
        sink(path=path).check,
        lambda: write(sink(path=path), 0, [{"id": 1}]),
    )
    for call in calls:
        with pytest.raises(Permanent) as caught:
            call()
        assert caught.value.code == "unknown-bucket"
        assert caught.value.hint == f'did you mean "{bucket.name}"?'


def test_an_outage_after_an_empty_listing_is_transient(
    source: Any, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = ArrowStorage._list

    def list_then_stop(storage: ArrowStorage, directory: str, recursive: bool) -> list[Any]:
        found = listing(storage, directory, recursive)
        s3.gate.stop()
        return found

    monkeypatch.setattr(ArrowStorage, "_list", list_then_stop)
    try:
        with pytest.raises(Transient) as caught:
            ids(source("empty", watch=True))
    finally:
        s3.gate.start()
    assert "is running and reachable" in (caught.value.hint or "")


def test_nothing_at_the_path(source: Any, bucket: Bucket) -> None:
    bucket.put("clicks/a.jsonl", ROW)
    with pytest.raises(Permanent) as caught:
        ids(source("click/*.jsonl"))
    assert caught.value.code == "no-files"
    assert caught.value.hint == 'did you mean "clicks"?'


@pytest.mark.parametrize(
    "path",
    ["s3://key:secret@bucket/x", "s3://key@bucket", "abfss://:key@account.dfs.core.windows.net/c"],
)
def test_no_credentials_in_a_url(source: Any, sink: Any, path: str) -> None:
    for make in (source, sink):
        with pytest.raises(ValidationError, match="expected a URL without credentials"):
            make(path=path)


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ({"auth": {"access_key": "a"}}, "expected access_key and secret_key"),
        ({"auth": {"session_token": "a"}}, "expected access_key and secret_key"),
        (
            {"anonymous": True, "auth": {"access_key": "a", "secret_key": "b"}},
            "anonymous excludes auth",
        ),
        ({"tls": {"verify": False}}, "tls supports only ca"),
        ({"endpoint_url": "http://localhost", "tls": True}, "URL with a TLS scheme"),
    ],
)
def test_halves_of_credentials(source: Any, storage: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        source(storage=storage)


def test_storage_excludes_parameters_and_other_systems(source: Any) -> None:
    for path in ("hdfs://host/x", "s3://bucket/x?region=eu-west-1"):
        with pytest.raises(PlanError, match="the option storage excludes"):
            ids(source(path=path))


def test_the_query_of_a_url_is_not_shown(
    bucket: Bucket, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("in/a b.jsonl", b"nonsense\n")
    server = bucket.server
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_key)
    query = f"endpoint_override=127.0.0.1%3A{server.gate.port}&scheme=http"
    config = FilesSource.config_type.model_validate({"path": f"{bucket.url}/in/*?{query}"})
    source = FilesSource(config, Context("p", "n"))
    source.format, source.columns = lines, ID
    start, read = source.initial_offset(), Read()
    [partition] = source.partitions(start, source.latest_offset(start))
    list(source.read(partition, read))
    assert read.bad[0].origin == f"{bucket.url}/in/a b.jsonl"
    assert source.decode(ROW, read.bad[0].origin, 1).to_pylist() == [{"id": 1}]


def test_keys_and_endpoint_of_the_environment(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = bucket.server
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_key)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.storage["endpoint_url"])
    bucket.put("a", b"x")
    storage, path = open_storage(f"{bucket.url}/a")
    assert storage.read(path) == b"x"
