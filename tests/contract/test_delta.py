from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from database_tables import write
from penstock.connectors.delta import DeltaSink
from penstock.core.errors import Permanent, Transient
from penstock.testing.contract import SinkContract
from servers.s3 import Bucket


def rows_of(path: str, schema: pa.Schema, storage: dict[str, str] | None = None) -> Any:
    """Reads the rows of a table by another client than Penstock's."""
    table = DeltaTable(path, storage_options=storage)
    return table.to_pyarrow_table().select(schema.names).cast(schema).to_pylist()


class TestDeltaSink(SinkContract):
    format = None
    component = DeltaSink

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"path": str(tmp_path / "a table")}

    @pytest.fixture
    def rows(self, options: dict[str, Any]) -> Any:
        return lambda schema: rows_of(options["path"], schema)


def access_to(bucket: Bucket) -> dict[str, str]:
    """Returns the options of delta-rs for a bucket."""
    storage = bucket.server.storage
    return {
        "AWS_ENDPOINT_URL": storage["endpoint_url"], "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": storage["auth"]["access_key"], "AWS_REGION": "us-east-1",
        "AWS_SECRET_ACCESS_KEY": storage["auth"]["secret_key"],
    }  # fmt: skip


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


def make(component: Any, **options: Any) -> Any:
    return component.create(component.config_type.model_validate(options))
