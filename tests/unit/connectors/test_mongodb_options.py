"""Invalid options of the MongoDB source and sink."""

from __future__ import annotations

import pyarrow as pa
import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.mongodb import MongodbSink
from penstock.connectors.mongodb.config import MongodbSinkConfig, MongodbSourceConfig
from penstock.connectors.mongodb.errors import row_error, translate_error
from penstock.core.errors import PlanError, Transient

OPTIONS = {"url": "mongodb://db.example/shop", "collection": "orders"}
COLUMNS = pa.schema([("id", pa.int64()), ("who", pa.string())])


@pytest.mark.parametrize(
    "case",
    [
        ({"url": "mongodb+srv://db.example/shop"}, "url", "expected mongodb://HOST[:PORT]"),
        ({"url": "mongodb://db.example"}, "url", "expected a database: mongodb://HOST/DATABASE"),
        ({"collection": "a$b"}, "collection", "expected the name of a collection, without $"),
        ({"auth": {"username": "a"}}, "auth", "expected username and password"),
        (
            {"tls": {"certificate": "a.pem", "key": "b.pem"}},
            "tls",
            "expected one file with certificate and key, in both tls options",
        ),
        ({"cursor_columns": ["a.b"]}, "cursor_columns", "without a dot, found a.b"),
        ({"cursor_columns": ["a", "a"]}, "cursor_columns", "expected each column once"),
        ({"pipeline": {"$match": {}}}, "pipeline", "Input should be a valid list"),
    ],
)
def test_invalid_options_of_the_source(case: Case) -> None:
    assert_option_error(MongodbSourceConfig, OPTIONS, case)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id_column": "key"}, 'id_column: unknown column "key"'),
        ({"object_id_columns": ["whom"]}, 'object_id_columns: unknown column "whom"'),
        ({"object_id_columns": ["id"]}, 'object_id_columns: column "id" has the type BIGINT'),
    ],
)
def test_columns_that_the_rows_do_not_have(options: dict[str, object], message: str) -> None:
    sink = MongodbSink(MongodbSinkConfig.model_validate({**OPTIONS, **options}))
    with pytest.raises(PlanError) as raised:
        sink.check_schema(COLUMNS)
    assert raised.value.message == message


def test_columns_that_documents_cannot_have() -> None:
    sink = MongodbSink(MongodbSinkConfig.model_validate({**OPTIONS, "id_column": "id"}))
    with pytest.raises(PlanError, match='columns "id" and "_id" are both the _id'):
        sink.check_schema(COLUMNS.append(pa.field("_id", pa.int64())))
    with pytest.raises(PlanError, match=r'column "\$x": MongoDB has no field of this name'):
        sink.check_schema(COLUMNS.append(pa.field("$x", pa.int64())))


def test_errors_by_code() -> None:
    from pymongo.errors import OperationFailure, ServerSelectionTimeoutError

    config = MongodbSourceConfig.model_validate(OPTIONS)
    codes = {
        13: "authorization", 18: "authentication", 50: "busy", 11600: "busy", 10107: "busy",
        9: "rejected",
    }  # fmt: skip
    for number, code in codes.items():
        error = translate_error(OperationFailure("no, full error: {}", number), config)
        assert error.code == code and "full error" not in error.message
    unreachable = ServerSelectionTimeoutError("refused, Timeout: 1s, Topology Description: <>")
    error = translate_error(unreachable, config)
    assert error.message == "could not reach the database db.example:27017/shop: refused"


def test_errors_of_a_write_that_are_not_of_its_document() -> None:
    config = MongodbSourceConfig.model_validate(OPTIONS)
    assert row_error({"code": 121, "errmsg": "Document failed validation"}, config).message == (
        "MongoDB rejects the document: Document failed validation"
    )
    with pytest.raises(Transient, match="interrupted at shutdown"):
        row_error({"code": 11600, "errmsg": "interrupted at shutdown"}, config)
