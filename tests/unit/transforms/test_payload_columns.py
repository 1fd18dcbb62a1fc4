"""Payloads in columns: `decode` and `encode` on Arrow batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import OptionError, PlanError
from penstock.plan.fingerprint import fingerprint
from penstock.sdk import Changes, Failure, registry
from penstock.sdk.columns.ddl import arrow_schema
from penstock.transforms.decode import Decode
from penstock.transforms.encode import Encode
from unit.plan.plans import memory, planned

COLUMNS = arrow_schema("id INT, body STRING")


def made(kind: Any, options: dict[str, Any], **format_options: Any) -> Any:
    """Returns a transform with its format, as the planner makes it."""
    type_ = registry.find("format", options["format"])
    transform = kind(kind.config_type.model_validate(options))
    transform.format = type_.create(type_.config_type.model_validate(format_options))
    transform.validate()
    return transform


def decode(texts: list[str | None], framing: str = "none", **options: Any) -> list[Any]:
    options = {"column": "body", "format": "json", "schema": "a INT", **options}
    rows = [{"id": number, "body": text} for number, text in enumerate(texts)]
    batch = pa.RecordBatch.from_pylist(rows, schema=COLUMNS)
    output = list(made(Decode, options, framing=framing).apply(batch))
    return [
        (each.index, each.error.code) if isinstance(each, Failure) else each.to_pylist()
        for each in output
    ]


def test_failing_rows_keep_their_indexes() -> None:
    rows, *failures = decode(['{"a": 1}', "{", '{"a": 3}', None, '{"a": "x"}'])
    assert rows == [{"id": 0, "a": 1}, {"id": 2, "a": 3}]
    assert failures == [(1, "not-json"), (3, "no-value"), (4, "wrong-type")]


def test_a_payload_of_several_records_is_decoded_as_a_whole_or_not() -> None:
    rows, *failures = decode(['{"a": 1}\n{"a": 2}', '{"a": 3}\n{', '{"a": 5}'], "lines")
    assert rows == [{"id": 0, "a": 1}, {"id": 0, "a": 2}, {"id": 2, "a": 5}]
    assert failures == [(1, "not-json")]


def test_columns_of_payloads_are_selected() -> None:
    options = {"schema": "a INT, b INT, c INT", "columns": ["c", "a"], "keep": True}
    (rows,) = decode(['{"a": 1, "b": 2, "c": 3}'], **options)
    assert rows == [{"id": 0, "body": '{"a": 1, "b": 2, "c": 3}', "c": 3, "a": 1}]


def test_secrets_of_a_format_are_hashed_in_the_fingerprint(tmp_path: Path) -> None:
    registry_ = {"url": "http://h", "subject": "s", "auth": {"username": "u", "password": "clear"}}
    decoding = {
        "type": "decode", "from": "in", "column": "body", "schema": "a INT",
        "format": {"type": "json", "registry": registry_},
    }  # fmt: skip
    source = {"type": "memory", "rows": [], "schema": "body BINARY"}
    document = {
        "sources": {"in": source},
        "transforms": {"decoded": decoding},
        "sinks": {"out": memory("decoded")},
    }
    plan = planned(tmp_path, document)
    transform: Any = plan.nodes["decoded"].component
    assert transform.format.config.registry.auth.password.reveal() == "clear"
    for text in (json.dumps(fingerprint(plan, b"key")), repr(transform.config)):
        assert "clear" not in text


def test_errors_of_columns() -> None:
    options = {"column": "body", "format": "json"}
    with pytest.raises(PlanError, match="does not declare"):
        made(Decode, options)
    with pytest.raises(OptionError, match='unknown column "b"'):
        made(Decode, {**options, "schema": "a INT", "columns": ["b"]})
    with pytest.raises(OptionError, match='the input has a column "ID"'):
        made(Decode, {**options, "schema": "ID INT"}).output(COLUMNS)
    with pytest.raises(PlanError, match='has the column "id" of the input'):
        made(Encode, {**options, "column": "id", "columns": ["body"]}).output(COLUMNS)


@pytest.mark.parametrize(("format_", "type_"), [("json", pa.string()), ("raw", pa.binary())])
def test_encoded_payloads_are_text_or_bytes(format_: str, type_: pa.DataType) -> None:
    encode = made(Encode, {"column": "out", "columns": ["body"], "format": format_})
    assert encode.output(COLUMNS) == pa.schema([("id", pa.int32()), ("out", type_)])


def test_rows_that_cannot_be_encoded() -> None:
    batch = pa.RecordBatch.from_pylist([{"id": 1, "body": "x"}, {"id": 2}], schema=COLUMNS)
    options = {"column": "out", "columns": ["body"], "format": "raw", "column_type": "STRING"}
    rows, failure = made(Encode, options).apply(batch)
    assert rows.to_pylist() == [{"id": 1, "out": "x"}]
    assert (failure.index, failure.error.code) == (1, "no-value")


def test_the_operation_of_a_change_is_not_encoded() -> None:
    batch = pa.RecordBatch.from_pylist([{"id": 1, "_op": "d"}])
    encode = made(Encode, {"column": "out", "format": "json"})
    encode.changes = Changes("_op", False)
    (rows,) = encode.apply(batch)
    assert rows.to_pylist() == [{"_op": "d", "out": '{"id":1}'}]
