"""Files in Google Cloud Storage and Azure: the tests of S3 that another client may fail."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from penstock.connectors.files import FilesSink, FilesSource, cloud_store
from penstock.connectors.files.cloud_store import CloudStorage
from penstock.connectors.files.filesystem import open_storage
from penstock.core.error_report import format_error
from penstock.core.errors import Permanent, PlanError, Transient
from penstock.sdk import Context, Read, object_client, object_files
from penstock.sdk.object_client import StoreUrl, check_url, store_settings
from penstock.sdk.object_store import StorageOptions
from servers.azurite import ACCOUNT, Azurite
from servers.gcs import Gcs
from servers.http_objects import HttpBucket
from stored_files import ID, ROW, ids, make_sink, make_source, stop_and_continue, write


@pytest.fixture(params=["gcs", "azurite"])
def bucket(request: pytest.FixtureRequest) -> HttpBucket:
    server: Gcs | Azurite = request.getfixturevalue(request.param)
    return server.new_bucket()


@pytest.fixture
def source(bucket: HttpBucket, lines: Any) -> Callable[..., FilesSource]:
    return partial(make_source, bucket, lines)


@pytest.fixture
def sink(bucket: HttpBucket, lines: Any) -> Callable[..., FilesSink]:
    return partial(make_sink, bucket, lines)


def test_paths_and_patterns(source: Any, bucket: HttpBucket) -> None:
    keys = ["in/a.jsonl", "in/x/b c=ü%.jsonl", "in/x/y/c.jsonl", "in/_done/d.jsonl", "e.jsonl"]
    for number, key in enumerate(keys, 1):
        bucket.put(key, b'{"id": %d}\n' % number)
    bucket.put("inner.jsonl", b"of another directory")
    found = {
        "in": [1, 2, 3], "in/": [1, 2, 3], "in/a.jsonl": [1], "in/*.jsonl": [1],
        "in/[ab].jsonl": [1], "in/*/*.jsonl": [2], "in/**/*.jsonl": [1, 2, 3],
        "i*/**": [1, 2, 3], "in/_done/*": [4], "e*.jsonl": [5],
    }  # fmt: skip
    assert {path: sorted(ids(source(path))) for path in found} == found
    storage, root = open_storage(bucket.url, source().config.storage)
    assert root == "/" and storage.url("/in/a.jsonl") == f"{bucket.url}/in/a.jsonl"
    assert storage.names("/in") == ["_done", "a.jsonl", "x"]
    assert storage.is_directory("/in/x") and not storage.is_directory("/in/a")
    assert storage.stat("/in") is None and storage.excess("/" + "ü" * 513) is not None
    assert storage.read("/none") is None


def test_objects_that_mark_directories_are_no_files(source: Any, bucket: HttpBucket) -> None:
    for key in ("in/", "in/x/", "in/empty/", "in/x/none"):
        bucket.put(key, b"")
    bucket.put("in/x/a", ROW)
    assert ids(source()) == ids(source("in/*/*")) == [1]
    storage = open_storage(bucket.url, source().config.storage)[0]
    assert [entry.path for entry in storage.walk("/in")] == ["/in/x/a", "/in/x/none"]
    assert storage.names("/in") == ["empty", "x"]


def test_a_key_with_an_empty_part(source: Any, bucket: HttpBucket) -> None:
    bucket.put("in//a", ROW)
    with pytest.raises(Permanent) as caught:
        ids(source())
    assert caught.value.code == "invalid-name" and "two slashes" in (caught.value.hint or "")


def test_contents(source: Any, bucket: HttpBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "_READ_BYTES", 1000)
    bucket.put("in/a.jsonl.gz", gzip.compress(ROW * 1000))
    bucket.put("in/b.jsonl", ROW * 1000)
    bucket.put("in/c.jsonl", b"")
    assert len(ids(source())) == 2000
    content = bytes(range(256)) * 20
    bucket.put("d", content)
    with open_storage(f"{bucket.url}/d", source().config.storage)[0].open("/d") as file:
        assert file.read(3) == content[:3] and file.seek(-2, io.SEEK_END) == len(content) - 2
        assert file.read() == content[-2:] and file.read() == b""
        assert file.seek(4000) == 4000 and file.read() == content[4000:]


def test_a_growing_file_and_a_changed_file(source: Any, bucket: HttpBucket) -> None:
    bucket.put("in/a", ROW)
    tailing, reading = source(tail=True), source()
    start = tailing.latest_offset(tailing.initial_offset())
    begin = reading.initial_offset()
    end = reading.latest_offset(begin)
    bucket.put("in/a", ROW * 3)
    later = tailing.latest_offset(start)
    rows = [b for p in tailing.partitions(start, later) for b in tailing.read(p, Read())]
    assert sum(len(batch) for batch in rows) == 2
    with pytest.raises(Permanent) as caught:
        [list(reading.read(p, Read())) for p in reading.partitions(begin, end)]
    assert caught.value.code == "file-changed"


def test_after_read(source: Any, bucket: HttpBucket) -> None:
    bucket.put("in/a b", ROW)
    bucket.put("done/a b", b"")
    assert ids(source(after_read={"move": f"{bucket.url}/done"})) == [1]
    assert bucket.names() == ["done/a b", "done/a b-1"] and bucket.get("done/a b-1") == ROW
    bucket.put("in/c", ROW)
    assert ids(source(after_read="delete")) == [1] and "in/c" not in bucket.names()
    for other in ("done", bucket.url.replace(bucket.name, "other") + "/done"):
        with pytest.raises(ValidationError, match="directory in the file system of path"):
            source(after_read={"move": other})


def test_large_parquet_files(sink: Any, source: Any, bucket: HttpBucket, lines: Any) -> None:
    """A file of several parts, which is uploaded while it is written."""
    from penstock.sdk import registry

    writing = sink()
    parquet_format = registry.find("format", "parquet")
    writing.format = parquet_format(parquet_format.config_type(), Context("p", "n"))
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("text", pa.binary())])
    noise = [
        {"id": number, "text": bytes([number]) * 9 + bucket.name.encode()} for number in range(9)
    ]
    big = [{**row, "text": row["text"] * 60_000} for row in noise]
    write(writing, 0, big, schema)
    (name,) = bucket.names("out")
    table = parquet.read_table(io.BytesIO(bucket.get(name)))
    assert table.to_pylist() == big


@pytest.mark.parametrize("at", range(12))
def test_stopped_at_any_change(sink: Any, bucket: HttpBucket, at: int) -> None:
    """The process ends before the change number `at`; the next one continues."""
    stop_and_continue(lambda: sink(storage=bucket.server.direct), at)
    assert sorted(bucket.get(name) for name in bucket.names()) == [b'{"id": 1}\n', b'{"id": 2}\n']


def test_a_copy_that_is_not_complete_keeps_the_original(
    bucket: HttpBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    import obstore

    storage = CloudStorage(bucket.url, StorageOptions.model_validate(bucket.server.storage))
    bucket.put("a", ROW)
    with monkeypatch.context() as patch:
        patch.setattr(obstore, "copy", lambda store, source, target: bucket.put(target, b""))
        with pytest.raises(OSError, match="the copy of a is not complete"):
            storage.move("/a", "/b")
    assert bucket.get("a") == ROW
    storage.move("/a", "/b")
    assert bucket.names() == ["b"] and bucket.get("b") == ROW


def test_a_server_that_is_down(
    source: Any, sink: Any, bucket: HttpBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(object_client.RETRIES, "retry_timeout", timedelta(seconds=1))
    calls = (lambda: ids(source()), source().check, lambda: write(sink(), 0, [{"id": 1}]))
    bucket.server.gate.stop()
    try:
        for call in calls:
            with pytest.raises(Transient) as caught:
                call()
            assert "is running and reachable" in (caught.value.hint or "")
            assert bucket.server.secret not in format_error(caught.value)
    finally:
        bucket.server.gate.start()
    assert ids(source(watch=True)) == []


def test_a_server_that_does_not_answer(
    source: Any, bucket: HttpBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_store, "STALL_SECONDS", 0.2)
    monkeypatch.setitem(object_client.RETRIES, "retry_timeout", timedelta(seconds=1))
    reading = source()
    bucket.server.gate.pause()
    try:
        with pytest.raises(Transient, match="could not list files"):
            ids(reading)
    finally:
        bucket.server.gate.stop()
        bucket.server.gate.resume()
        bucket.server.gate.start()


def test_a_server_that_goes_down_while_a_file_is_read(
    source: Any, bucket: HttpBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_files, "_READ_BYTES", 10_000)
    bucket.put("in/a.jsonl", ROW * 20_000)
    reading, read = source(), Read()
    start = reading.initial_offset()
    [partition] = reading.partitions(start, reading.latest_offset(start))
    rows = reading.read(partition, read)
    next(rows)
    bucket.server.gate.stop()
    try:
        with pytest.raises(Transient, match="could not read"):
            list(rows)
    finally:
        bucket.server.gate.start()
    assert not read.bad


def test_credentials_that_the_server_rejects(source: Any, sink: Any, bucket: HttpBucket) -> None:
    storage = {**bucket.server.storage, "auth": bucket.server.wrong_auth}
    calls = (
        lambda: ids(source(storage=storage)),
        source(storage=storage, watch=True).check,
        sink(storage=storage).check,
        sink(storage=storage).recover,
        lambda: write(sink(storage=storage), 0, [{"id": 1}]),
        lambda: ids(source(storage={**storage, "auth": None, "anonymous": True})),
    )
    for call in calls:
        with pytest.raises(Permanent) as caught:
            call()
        assert caught.value.code == "authorization"
        assert "storage.auth" in (caught.value.hint or "")
        secrets = [str(value) for value in bucket.server.wrong_auth.values()]
        assert not any(secret in format_error(caught.value) for secret in secrets)


def test_credentials_of_the_environment(
    source: Any, bucket: HttpBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("in/a", ROW)
    auth = bucket.server.storage["auth"]
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", auth.get("service_account", ""))
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", auth.get("account_key", ""))
    endpoint = bucket.server.storage["endpoint_url"]
    assert ids(source(storage={"endpoint_url": endpoint})) == [1]


def test_no_such_bucket(source: Any, sink: Any, bucket: HttpBucket) -> None:
    path = bucket.url.replace(bucket.name, "no-such-bucket") + "/x"
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
        assert caught.value.code == "unknown-bucket" and "no-such-bucket" in caught.value.message
        assert caught.value.hint == "Create the bucket, or correct path."


def test_nothing_at_the_path(source: Any, bucket: HttpBucket) -> None:
    bucket.put("clicks/a.jsonl", ROW)
    with pytest.raises(Permanent) as caught:
        ids(source("click/*.jsonl"))
    assert caught.value.code == "no-files"
    assert caught.value.hint == 'did you mean "clicks"?'


def test_a_shared_access_signature_without_the_right_to_write(azurite: Azurite, lines: Any) -> None:
    bucket = azurite.new_bucket()
    bucket.put("in/a", ROW)
    auth = {"sas_token": f"?{azurite.signed('rl')}"}
    storage = {**azurite.storage, "account": ACCOUNT, "auth": auth}
    config = {"path": f"az://{bucket.name}/in", "storage": storage}
    reading = FilesSource(FilesSource.config_type.model_validate(config), Context("p", "n"))
    reading.format, reading.columns = lines, ID
    assert ids(reading) == [1]
    writing = FilesSink(FilesSink.config_type.model_validate(config), Context("p", "n"))
    writing.format = lines
    with pytest.raises(Permanent) as caught:
        writing.check()
    assert caught.value.code == "authorization" and "sig=" not in format_error(caught.value)


@pytest.mark.parametrize(
    ("url", "storage", "code", "said"),
    [
        ("gs://b/x", {"auth": {"account_key": "a"}}, "invalid-option", "auth.account_key"),
        ("gs://b/x", {"region": "eu"}, "invalid-option", "storage.region excludes gs:// URLs"),
        ("s3://b/x", {"account": "a"}, "invalid-option", "storage.account excludes s3:// URLs"),
        ("az://b/x", {"auth": {"access_key": "", "secret_key": ""}}, "invalid-option", "access"),
        ("az://b/x", {}, "invalid-option", "expected a URL with the account of Azure"),
        ("abfss://b@a.example.org/x", {}, "invalid-option", "expected abfss://container@acc"),
        ("gs://user@b/x", {}, "invalid-option", "expected gs://bucket/path"),
        ("gs:///x", {}, "invalid-option", "expected gs://bucket/path"),
        ("gs://b/x?scheme=http", {}, "invalid-option", "cannot have parameters"),
        ("gs://b/x", {"auth": {"service_account": "/none"}}, "authentication", "cannot be"),
        ("az://b/x", {"account": "a", "auth": {"account_key": "hunter22!"}}, "authentication", ""),
        ("az://b/x", {"account": "a", "auth": {"sas_token": "hunter22"}}, "authentication", ""),
    ],
)  # fmt: skip
def test_options_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, url: str, storage: dict[str, Any], code: str, said: str
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(PlanError) as caught:
        open_storage(url, StorageOptions.model_validate(storage))
    assert said in caught.value.message and caught.value.code == code and caught.value.hint
    assert "hunter22" not in format_error(caught.value)


def test_pattern_with_a_question_mark() -> None:
    for url in ("gs://b/in/?.jsonl", "gs://b/in/?=1/x", "s3://b/in/?"):
        check_url(url, None)


def test_the_settings_of_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "of-environment")
    options = StorageOptions.model_validate(
        {"auth": {"sas_token": "?sv=1"}, "account": "of-option"}
    )
    assert store_settings("abfs://c@of-url.dfs.core.windows.net/p", options) == {
        "account_name": "of-url", "sas_key": "sv=1"
    }  # fmt: skip
    assert store_settings("az://c", options)["account_name"] == "of-option"
    assert store_settings("az://c", StorageOptions())["account_name"] == "of-environment"
    assert store_settings("abfss://w@onelake.dfs.fabric.microsoft.com/l", StorageOptions()) == {
        "account_name": "onelake", "use_fabric_endpoint": True
    }  # fmt: skip
    given = {"endpoint_url": "http://localhost", "anonymous": True}
    assert store_settings("gs://b", StorageOptions.model_validate(given)) == {
        "base_url": "http://localhost", "skip_signature": True
    }  # fmt: skip
    assert StoreUrl.parse("gcs://b/p/q/", options).key == "p/q"
