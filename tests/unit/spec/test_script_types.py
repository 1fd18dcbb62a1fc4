"""Types of other dialects in `CREATE TABLE`."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spec.documents.reading import load
from penstock.sql.datafusion.types import translate_type

TYPES = {
    "INT2": "SMALLINT",
    "INT4": "INT",
    "int8": "BIGINT",
    "INT(11)": "INT",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "FLOAT(53)": "FLOAT",
    "DOUBLE PRECISION": "DOUBLE",
    "BOOL": "BOOLEAN",
    "NUMERIC(5,2)": "NUMERIC(5,2)",
    "CHAR(3)": "STRING",
    "VARCHAR(10)": "STRING",
    "character varying(10)": "STRING",
    "TEXT": "STRING",
    "JSON": "STRING",
    "BYTEA": "BINARY",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMP(3)": "TIMESTAMP",
    "BIGINT UNSIGNED": "DECIMAL(20, 0)",
    "INTEGER UNSIGNED": "BIGINT",
    "TEXT[][]": "ARRAY<ARRAY<STRING>>",
    "STRUCT<text TEXT, n INT8[], m MAP<TEXT, BOOL>>": (
        "STRUCT<text STRING, n ARRAY<BIGINT>, m MAP<STRING, BOOLEAN>>"
    ),
    "STRUCT<`json`: JSON NOT NULL COMMENT 'a, text'>": (
        "STRUCT<`json`: STRING NOT NULL COMMENT 'a, text'>"
    ),
    "DECIMAL(10,2)": "DECIMAL(10,2)",
    "INTERVAL DAY TO SECOND": "INTERVAL DAY TO SECOND",
    "STRUCT<a TEXT": "STRUCT<a TEXT",
    "INT)": "INT)",
}


@pytest.mark.parametrize("name", TYPES)
def test_type(name: str) -> None:
    assert translate_type(name) == TYPES[name]


def test_a_decimal_without_a_precision_has_ten_digits_of_a_fraction_in_arroyo(
    tmp_path: Path,
) -> None:
    for connector, expected in (("single_file", "DECIMAL(38, 10)"), ("files", "DECIMAL")):
        path = tmp_path / f"{connector}.sql"
        path.write_text(
            f"CREATE TABLE a (d DECIMAL) WITH (connector = '{connector}', path = 'x');\n"
            "SELECT d FROM a;\n"
        )
        assert load([path], env={}).root.data()["sources"]["a"]["schema"] == {"d": expected}


def test_the_last_one_of_repeated_options_has_an_effect_in_arroyo(tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text(
        "CREATE TABLE a (id BIGINT) WITH (connector = 'single_file', path = 'x',\n"
        "  format = 'json', format = 'debezium_json');\nSELECT id FROM a;\n"
    )
    document = load([path], env={})
    assert document.root.data()["sources"]["a"]["format"]["type"] == "debezium_json"
    assert [str(each.where) for each in document.warnings] == [f"{path}:2:3"]
