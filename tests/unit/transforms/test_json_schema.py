"""Rows that are valid by a JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import OptionError
from penstock.sdk import Failure
from penstock.transforms.json_schema import JsonSchema, JsonSchemaConfig

SCHEMA = {
    "type": "object",
    "properties": {"id": {"$ref": "#/$defs/id"}, "name": {"type": "string", "maxLength": 3}},
    "required": ["id", "name"],
    "$defs": {"id": {"type": "integer", "minimum": 1}},
}


def made(directory: Path, schema: Any, **options: Any) -> JsonSchema:
    path = directory / "schema.json"
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    transform = JsonSchema(JsonSchemaConfig(schema_file=str(path), **options))
    transform.validate()
    transform.open()
    return transform


def apply(transform: JsonSchema, rows: list[dict[str, Any]]) -> tuple[list[Any], dict[int, str]]:
    first, *failures = transform.apply(pa.RecordBatch.from_pylist(rows))
    assert isinstance(first, pa.RecordBatch)
    errors = {each.index: each.error.message for each in failures if isinstance(each, Failure)}
    return first.to_pylist(), errors


def test_all_errors_of_a_row_are_named(tmp_path: Path) -> None:
    rows = [{"id": 1, "name": "Ann"}, {"id": 0, "name": "Anna"}, {"id": 2, "name": None}]
    valid, errors = apply(made(tmp_path, SCHEMA), rows)
    assert valid == rows[:1]
    assert errors == {
        1: "the row breaks rules: $.id: 0 is less than the minimum of 1; "
        "$.name: 'Anna' is too long",
        2: "the row breaks rules: $.name: None is not of type 'string'",
    }


def test_the_text_of_a_column_is_validated(tmp_path: Path) -> None:
    rows = [{"body": '{"id": 1, "name": ""}'}, {"body": "{"}, {"body": None}, {"body": "[" * 99999}]
    valid, errors = apply(made(tmp_path, SCHEMA, column="body"), rows)
    assert valid == rows[:1]
    assert [text.split(":")[0] for text in errors.values()] == [
        "not JSON", "the row breaks rules", "not JSON",
    ]  # fmt: skip


def test_other_files_are_not_read(tmp_path: Path) -> None:
    transform = made(tmp_path, {"$ref": "http://127.0.0.1:1/other.json"})
    with pytest.raises(Exception, match=r"other\.json"):
        apply(transform, [{"id": 1}])


@pytest.mark.parametrize("schema", ["{", '{"type": "objekt"}', "[]"])
def test_wrong_schemas_are_errors(tmp_path: Path, schema: str) -> None:
    with pytest.raises(OptionError, match="expected a file with a JSON Schema"):
        made(tmp_path, schema)
