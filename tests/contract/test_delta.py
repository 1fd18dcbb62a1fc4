from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from database_tables import read, write
from interruptions import Interruptions
from lake_tables import access_to
from penstock.connectors.delta import DeltaSink, DeltaSource, client
from penstock.core.errors import OptionError, Permanent, Transient
from penstock.sdk import object_store
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample
from servers.s3 import Bucket


def rows_of(path: str, schema: pa.Schema, storage: dict[str, str] | None = None) -> Any:
    """Reads the rows of a table by another client than Penstock's."""
    table = DeltaTable(path, storage_options=storage)
    return table.to_pyarrow_table().select(schema.names).cast(schema).to_pylist()


class TestDeltaSource(SourceContract):
    format = None
    component = DeltaSource
    batch_limit = {"max_files": 1}
    rejects_bad_records = True

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        path = str(tmp_path / "a table")
        DeltaTable.create(path, sample.SIMPLE)
        return {"path": path, "watch": True, "interval": "1ms"}

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        def put(rows: Any, schema: pa.Schema) -> None:
            known = pa.schema(DeltaTable(options["path"]).schema().to_arrow()).names
            table = pa.Table.from_pylist(rows, schema=schema)
            if known != schema.names:
                new = {"mode": "overwrite", "schema_mode": "overwrite"}
                write_deltalake(options["path"], table, **new)  # type: ignore[arg-type]
            else:
                write_deltalake(options["path"], table, mode="append")

        return put


class TestDeltaSink(SinkContract):
    format = None
    component = DeltaSink

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "a table")}

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return lambda schema: rows_of(options["path"], schema)


@pytest.mark.server
def test_a_table_on_s3(bucket: Bucket) -> None:
    path, storage = f"{bucket.url}/lake/t", bucket.server.storage
    rows = pa.record_batch({"id": [1, 2], "p": ["a b", "c"]})
    for number, key in ((0, []), (1, ["id"]), (1, ["id"])):
        sink = make(DeltaSink, path=path, storage=storage, partition_by=["p"])
        sink.mode, sink.primary_key = ("upsert", ("id",)) if key else ("append", ())
        sink.check()
        assert not write(sink, rows, number, pa.array(["d", "u"]) if key else None)
    assert rows_of(path, rows.schema, access_to(bucket)) == [{"id": 2, "p": "c"}]
    source = make(DeltaSource, path=path, storage=storage, version=1, watch=True, changes=True)
    source.columns = rows.schema.append(pa.field("_op", pa.string()))
    found, errors, _ = read(source)
    assert not errors and [row["_op"] for row in found[:2]] == ["i", "i"]
    assert sorted((row["_op"], row["id"]) for row in found[2:]) == [("d", 1), ("d", 2), ("i", 2)]
    with pytest.raises(OptionError, match="the table has no version at 2020-01-01"):
        make(DeltaSource, path=path, storage=storage, timestamp="2020-01-01").check()
    make(DeltaSource, path=path, storage=storage, timestamp="2200-01-01").check()
    wrong = {**storage, "auth": {**storage["auth"], "secret_key": "wrong"}}
    for other, code in (({"storage": wrong}, "authorization"), ({"path": "s3://no-such/t"}, None)):
        with pytest.raises(Permanent) as caught:
            make(DeltaSink, **{"path": path, "storage": storage, **other}).check()
        assert caught.value.hint and code in (None, caught.value.code)
    bucket.server.gate.stop()
    try:
        with pytest.raises(Transient) as lost:
            make(DeltaSink, path=path, storage=storage).check()
        assert lost.value.hint
    finally:
        bucket.server.gate.start()


@pytest.mark.server
@pytest.mark.parametrize("store", ["gcs", "azurite"])
def test_a_table_in_a_cloud(request: pytest.FixtureRequest, bucket: Bucket, store: str) -> None:
    """Azurite lists too many names for an upsert or a time: it ignores startFrom."""
    server = request.getfixturevalue(store)
    container, storage = server.new_bucket(), server.storage
    path = f"{container.url}/lake/t"
    rows = pa.record_batch({"id": [1, 2], "p": ["a b", "c"]})
    deletes = [(1, ["id"]), (1, ["id"])] if store == "gcs" else [(0, [])]
    for number, key in ((0, []), *deletes):
        sink = make(DeltaSink, path=path, storage=storage, partition_by=["p"])
        sink.mode, sink.primary_key = ("upsert", ("id",)) if key else ("append", ())
        sink.check()
        assert not write(sink, rows, number, pa.array(["d", "u"]) if key else None)
    if store == "gcs":
        with pytest.raises(OptionError, match="the table has no version at 2020-01-01"):
            make(DeltaSource, path=path, storage=storage, timestamp="2020-01-01").check()
    source = make(DeltaSource, path=path, storage=storage)
    source.columns = rows.schema
    found, errors, _ = read(source)
    assert not errors and [row["id"] for row in found] == ([2] if store == "gcs" else [1, 2])
    wrong = {**storage, "auth": server.wrong_auth}
    missing = path.replace(container.name, "no-such-bucket")
    cases = (({"storage": wrong}, "authorization"), ({"path": missing}, "unknown-bucket"))
    for other, code in cases:
        with pytest.raises(Permanent) as caught:
            make(DeltaSink, **{"path": path, "storage": storage, **other}).check()
        assert caught.value.hint and caught.value.code == code
        assert server.secret not in f"{caught.value.fields()}"
    server.gate.stop()
    try:
        with pytest.raises(Transient) as lost:
            make(DeltaSink, path=path, storage=storage).check()
        assert lost.value.hint
    finally:
        server.gate.start()


def make(component: Any, **options: Any) -> Any:
    return component.create(component.config_type.model_validate(options))


@pytest.mark.server
def test_interrupted_connections_to_s3(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "REQUEST_TIMEOUT", "1s")
    monkeypatch.setattr(client, "RETRY_TIMEOUT", "1s")
    monkeypatch.setattr(object_store, "REQUEST_TIMEOUT_SECONDS", 0.5)
    options = {"path": f"{bucket.url}/t", "storage": bucket.server.storage}
    check = Interruptions(bucket.server.gate, bucket.server.secret_key, options["path"])

    def write_batch(number: int) -> None:
        assert write(make(DeltaSink, **options), pa.record_batch({"id": [number]}), number) == {}

    def read_rows() -> list[int]:
        source = make(DeltaSource, **options)
        source.columns = pa.schema([("id", pa.int64())])
        return sorted(row["id"] for row in read(source)[0])

    check.check_writes(write_batch, 3, 1)
    assert check.check_reads(read_rows, 2, 1) == [*range(check.batches)]
