from __future__ import annotations

import uuid
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import InputFile

from iceberg_tables import catalog_options, client, rows_of
from interruptions import Interruptions, check_cut_responses
from lake_tables import read, write
from penstock.connectors.iceberg import IcebergSink, IcebergSource, catalogs
from penstock.connectors.iceberg.client import TableAccess
from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample
from servers.aws import REGION
from servers.gate import Gate
from servers.iceberg_rest import IcebergRest
from servers.postgres import PASSWORD, Postgres
from servers.s3 import Bucket


class TestIcebergSource(SourceContract):
    format = None
    component = IcebergSource
    batch_limit = {"max_files": 1}
    rejects_bad_records = True

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        options = {**catalog_options(tmp_path), "watch": True, "interval": "1ms"}
        catalog = client(options)
        catalog.create_namespace("shop")
        catalog.create_table(options["table"], schema=sample.SIMPLE)
        return options

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        def put(rows: Any, schema: pa.Schema) -> None:
            table = client(options).load_table(options["table"])
            if not {*schema.names} <= {field.name for field in table.schema().fields}:
                with table.update_schema() as update:
                    update.union_by_name(schema)
            table.append(pa.Table.from_pylist(rows, schema=schema))

        return put


class TestIcebergSink(SinkContract):
    format = None
    component = IcebergSink

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return catalog_options(tmp_path)

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return lambda schema: rows_of(options, schema)


def make(component: Any, options: dict[str, Any], **more: Any) -> Any:
    made = component.create(component.config_type.model_validate({**options, **more}))
    made.validate()
    return made


def use_table(options: dict[str, Any]) -> None:
    """Creates a table in a catalog, changes it, and reads it."""
    rows = pa.record_batch({"id": [1, 2], "p": ["a b", "c"]})
    for number, key in ((0, []), (1, ["id"]), (1, ["id"])):
        sink = make(IcebergSink, options, partition_by=["p"])
        sink.mode, sink.primary_key = ("upsert", ("id",)) if key else ("append", ())
        sink.check()
        assert not write(sink, rows, number, pa.array(["d", "u"]) if key else None)
        sink.close()
    source = make(IcebergSource, options, snapshot="earliest", watch=True, changes=True)
    found, _ = read(source)
    assert [row["_op"] for row in found[:2]] == ["i", "i"]
    assert sorted((row["_op"], row["id"]) for row in found[2:]) == [("d", 1), ("d", 2), ("i", 2)]
    assert sink.compact(1 << 20).removed == 0
    source.close()


def failure(kind: type[PenstockError], options: dict[str, Any], **more: Any) -> PenstockError:
    """Returns the error of a sink at its start."""
    with pytest.raises(kind) as caught:
        make(IcebergSink, options, **more).check()
    assert caught.value.hint and "wrong-secret" not in str(caught.value)
    return caught.value


def new_table() -> str:
    return f"shop{uuid.uuid4().hex[:8]}.t"


@pytest.mark.server
def test_a_rest_catalog(iceberg_rest: IcebergRest) -> None:
    options: dict[str, Any] = {
        "catalog": {"type": "rest", "url": iceberg_rest.url},
        "table": new_table(),
    }
    use_table(options)
    other: Catalog = RestCatalog("other", uri=iceberg_rest.url)
    table = other.load_table(options["table"])
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "p": "c"}]
    assert [each.summary and each.summary["penstock.batch"] for each in table.snapshots()] == [
        "0", "1",
    ]  # fmt: skip
    wrong = {"type": "rest", "url": f"{iceberg_rest.url}/nowhere"}
    failure(Permanent, options, catalog=wrong)
    iceberg_rest.stop()
    try:
        failure(Transient, options)
    finally:
        iceberg_rest.start()


@pytest.mark.server
def test_a_catalog_in_postgres(postgres: Postgres, tmp_path: Path) -> None:
    name = f"c{uuid.uuid4().hex[:8]}"
    login = {option: postgres.login[option] for option in ("url", "auth")}
    catalog = {"type": "sql", "warehouse": str(tmp_path), "name": name, **login}
    options = {"catalog": catalog, "table": new_table()}
    use_table(options)
    wrong = {**catalog, "auth": {**catalog["auth"], "password": "wrong-secret"}}
    assert failure(Permanent, options, catalog=wrong).code == "authorization"
    missing = {**catalog, "url": "postgresql://127.0.0.1:1/none"}
    failure(Transient, options, catalog=missing)


@pytest.mark.server
def test_tables_on_s3(bucket: Bucket, tmp_path: Path) -> None:
    """Checks the catalogs SQL and Glue with an object store."""
    storage = bucket.server.storage
    auth = {**storage["auth"], "secret_key": "wrong-secret"}
    sql = {"type": "sql", "path": str(tmp_path / "c.db"), "warehouse": f"{bucket.url}/lake"}
    glue = {"type": "glue", "region": REGION, "warehouse": f"{bucket.url}/glue", **storage}
    for catalog in (sql, glue):
        options = {"catalog": catalog, "table": new_table(), "storage": storage}
        use_table(options)
    assert failure(Permanent, options, catalog={**glue, "auth": auth}).code == "authorization"
    found = {"catalog": sql, "table": "shop.t", "storage": {**storage, "auth": auth}}
    with pytest.raises(Permanent) as caught:
        write(make(IcebergSink, found), pa.record_batch({"id": [1]}))
    assert caught.value.code == "authorization" and "wrong-secret" not in str(caught.value)
    bucket.server.gate.stop()
    try:
        failure(Transient, options)
    finally:
        bucket.server.gate.start()


@pytest.mark.server
@pytest.mark.parametrize("store", ["gcs", "azurite"])
def test_tables_in_a_cloud(
    request: pytest.FixtureRequest, bucket: Bucket, tmp_path: Path, store: str
) -> None:
    server = request.getfixturevalue(store)
    container = server.new_bucket()
    catalog = {
        "type": "sql", "path": str(tmp_path / "c.db"), "warehouse": f"{container.url}/lake"
    }  # fmt: skip
    options = {"catalog": catalog, "table": new_table(), "storage": server.storage}
    use_table(options)
    cases: list[tuple[dict[str, Any], type[PenstockError], str]] = [
        ({"storage": {**server.storage, "auth": server.wrong_auth}}, Permanent, "authorization"),
        ({"catalog": {**catalog, "warehouse": f"{container.url}/x"}}, Transient, "unavailable"),
    ]
    for change, kind, code in cases:
        if kind is Transient:
            server.gate.stop()
        try:
            with pytest.raises(kind) as caught:
                found = {**options, "table": "shop.other", **change}
                write(make(IcebergSink, found), pa.record_batch({"id": [1]}))
        finally:
            server.gate.heal()
        assert caught.value.code == code
        assert server.secret not in f"{caught.value.fields()}"


@pytest.mark.server
def test_responses_of_s3_that_are_cut_between_their_headers(bucket: Bucket, tmp_path: Path) -> None:
    """PyIceberg reads metadata, Penstock data files, both by the same implementation of files."""
    catalog = {"type": "sql", "path": str(tmp_path / "c.db"), "warehouse": f"{bucket.url}/lake"}
    options = {"catalog": catalog, "table": new_table(), "storage": bucket.server.storage}
    assert write(make(IcebergSink, options), pa.record_batch({"id": [1]})) == {}
    files = TableAccess.of(IcebergSource.config_type.model_validate(options)).require("").io
    for key in bucket.names():
        content, file = bucket.get(key), files.new_input(f"{bucket.url}/{key}")
        read_whole = partial(_content, file)
        assert check_cut_responses(bucket.server.gate, read_whole, len(content)) == content


def _content(file: InputFile) -> bytes:
    with file.open() as stream:
        return stream.read()


def check_interruptions(check: Interruptions, options: dict[str, Any]) -> None:
    """Writes and reads a table over connections to its catalog that are interrupted."""

    def write_batch(number: int) -> None:
        sink = make(IcebergSink, options)
        with closing(sink):
            assert write(sink, pa.record_batch({"id": [number]}), number) == {}

    def read_rows() -> list[int]:
        with closing(make(IcebergSource, options)) as source:
            return sorted(row["id"] for row in read(source)[0])

    check.check_writes(write_batch)
    assert check.check_reads(read_rows, 2, 1) == [*range(check.batches)]


@pytest.mark.server
def test_interrupted_connections_to_a_rest_catalog(
    iceberg_rest: IcebergRest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "RESPONSE_SECONDS", 2)
    table = new_table()
    with Gate(iceberg_rest.port) as gate:
        check = Interruptions(gate, "no secret", table)
        catalog = check.through({"type": "rest", "url": iceberg_rest.url})
        check_interruptions(check, {"catalog": catalog, "table": table})


@pytest.mark.server
def test_interrupted_connections_to_a_catalog_in_postgres(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "SILENCE", -58)
    monkeypatch.setattr("penstock.connectors.iceberg.client.CONNECT_SECONDS", 1)
    table = new_table()
    with Gate(postgres.port) as gate:
        check = Interruptions(gate, PASSWORD, table)
        login = check.through({name: postgres.login[name] for name in ("url", "auth")})
        catalog = {"type": "sql", "warehouse": str(tmp_path), "name": table, **login}
        check_interruptions(check, {"catalog": catalog, "table": table})
