from __future__ import annotations

from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from database_tables import write
from penstock.connectors.mongodb import MongodbSink, MongodbSource
from penstock.connectors.mongodb.client import codec_options
from penstock.connectors.mongodb.documents import to_rows
from penstock.sdk import Read
from penstock.sdk.database.row_conversion import RowConversion
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample
from servers.ferretdb import FerretDb

DOTS = "FerretDB 1 rejects names of fields with a dot"


class OneCollection:
    component: type[MongodbSource | MongodbSink]
    format = None
    wrong_credentials = {"auth": {"username": "made-up-user", "password": "wrong"}}
    unsupported = {"test_special_column_names": DOTS}

    @pytest.fixture
    def server(self, ferretdb: FerretDb) -> FerretDb:
        return ferretdb

    @pytest.fixture
    def options(self, ferretdb: FerretDb) -> dict[str, Any]:
        options = {**ferretdb.login, "collection": ferretdb.new_collection(), "timeout": "5s"}
        if self.component is MongodbSource:
            with closing(ferretdb.client()) as client:
                client["shop"].create_collection(options["collection"])
        return options

    @pytest.fixture(autouse=True)
    def _whole_milliseconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Leaves out microseconds, which MongoDB does not store."""
        rows = sample.make_typed_rows()
        rows[0]["at"] = rows[0]["at"].replace(microsecond=123_000)
        monkeypatch.setattr(sample, "make_typed_rows", lambda: rows)


class TestMongodbSource(OneCollection, SourceContract):
    component = MongodbSource
    batch_limit = {"max_records": 1}
    unsupported = {
        **OneCollection.unsupported,
        "test_message_above_max_message_size": "an option of changes",
    }

    @pytest.fixture
    def put(self, options: dict[str, Any]) -> Any:
        given = {name: options[name] for name in ("url", "auth", "collection")}
        config = MongodbSink.config_type.model_validate({**given, "decimals": "string"})

        def put(rows: Any, schema: pa.Schema) -> None:
            assert write(MongodbSink(config), pa.RecordBatch.from_pylist(rows, schema)) == {}

        return put


class TestMongodbSink(OneCollection, SinkContract):
    component = MongodbSink

    @pytest.fixture
    def options(self, ferretdb: FerretDb) -> dict[str, Any]:
        collection = ferretdb.new_collection()
        return {
            **ferretdb.login, "collection": collection, "timeout": "5s", "decimals": "string",
        }  # fmt: skip

    @pytest.fixture
    def rows(self, options: dict[str, Any], ferretdb: FerretDb) -> Any:
        """Reads few documents at a time: FerretDB 1 fails with more than 48 MB in a response."""

        def rows(schema: pa.Schema) -> list[dict[str, Any]]:
            read = Read()
            with closing(ferretdb.client()) as client:
                collection = client["shop"].get_collection(options["collection"], codec_options())
                documents = [*collection.find(batch_size=20).sort("_id", 1)]
            batches = to_rows(documents, RowConversion("rows", schema, read), str)
            found = [row for batch in batches for row in batch.to_pylist()]
            assert read.bad == []
            return found

        return rows
