"""Literals, errors and options of the connector for MySQL, without a server."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from pydantic import ValidationError

from penstock.connectors.mysql.config import ConnectionConfig
from penstock.connectors.mysql.errors import translate_error
from penstock.connectors.mysql.literals import blocks, chunks, conditions, literals, tuples
from penstock.connectors.mysql.types import DIALECT, TYPES
from penstock.core.errors import Permanent, Rejected, Transient
from penstock.sdk.database import TableName
from penstock.sdk.database.types import with_declared

CONFIG = ConnectionConfig.model_validate({"url": "mariadb://db.example/my%20shop"})


def columns_of(**values: Any) -> list[pa.StringArray]:
    rows = pa.record_batch({name: pa.array(each) for name, each in values.items()})
    return literals(rows, rows.schema)


def test_literals_have_no_end_of_their_own() -> None:
    texts = ["a'b", "\\'; DROP TABLE t; --", "\0", None]
    found = columns_of(s=texts, n=[1, None, -1, 0], raw=[b"'\\", b"", None, b"\xff"])
    assert tuples(found).to_pylist() == [
        "('a\\'b', 1, X'275c')", "('\\\\\\'; DROP TABLE t; --', NULL, X'')", "('\\0', -1, NULL)",
        "(NULL, 0, X'ff')",
    ]  # fmt: skip
    found = columns_of(d=[Decimal("1E-18")], b=[True], at=[datetime(2024, 1, 1)], f=[0.1])
    assert conditions(["`d`", "`b`", "`at`", "`f`"], found).to_pylist() == [
        "(`d` = 0.000000000000000001 AND `b` = 1 AND `at` = '2024-01-01 00:00:00.000000' "
        "AND `f` = '0.1')"
    ]


@pytest.mark.slow
def test_statements_have_a_size() -> None:
    texts = pa.array(["x" * 40, "y", "z" * 90, "w"])
    assert [len(part) for part in chunks(texts, 94, 9)] == [2, 1, 1]
    assert [len(part) for part in chunks(texts, 1000, 3)] == [3, 1]
    rows = pa.record_batch({"s": ["x" * 2**20] * 40})
    parts = list(blocks(rows))
    assert sum(part.num_rows for part in parts) == 40 and len(parts) == 4


def test_values_that_a_column_would_change() -> None:
    day, late = datetime(2024, 1, 1), pa.array([2**62], pa.timestamp("us"))
    wrong: list[tuple[str, Any]] = [
        ("datetime(3)", [day.replace(microsecond=1)]), ("datetime", late), ("double", [1e999]),
        ("year(4)", [7]), ("binary(3)", [b"12"]), ("time(2)", ["10:00:00.001"]),
        ("char(4)", ["a "]), ("enum('a','it''s')", ["2"]), ("set('1','b')", [" 3"]),
    ]  # fmt: skip
    for declared, values in wrong:
        array = pa.array(values)
        rows = pa.record_batch({"c": array})
        with pytest.raises(Rejected, match='column "c" of the table'):
            literals(rows, pa.schema([with_declared(rows.schema.field("c"), declared)]))


@pytest.mark.parametrize(
    ("number", "state", "reason", "expected", "code"),
    [
        (1062, "23000", "Duplicate entry 'SSL certificate' for key 'a' at row 3", Rejected, None),
        (1644, "45000", "no", Rejected, None),
        (3819, "HY000", "Check constraint 'c' is violated.", Rejected, None),
        (1213, "40001", "Deadlock found", Transient, "busy"),
        (1040, "08004", "Too many connections", Transient, "busy"),
        (1290, "HY000", "running with the --read-only option", Transient, "busy"),
        (1047, "08S01", "WSREP has not yet prepared node", Transient, "busy"),
        (2006, None, "MySQL server has gone away", Transient, "unreachable"),
        (2003, None, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify", Permanent, "tls"),
        (2003, None, "[SSL: UNEXPECTED_EOF_WHILE_READING] EOF", Transient, "unreachable"),
        (1045, "28000", "Access denied for user", Permanent, "authentication"),
        (1142, "42000", "SELECT command denied", Permanent, "authorization"),
        (1049, "42000", "Unknown database", Permanent, "unknown-database"),
        (1064, "42000", "You have an error in your SQL syntax", Permanent, "rejected"),
    ],
)  # fmt: skip
def test_errors_by_number(
    number: int, state: str | None, reason: str, expected: type[Exception], code: str | None
) -> None:
    error = pymysql.err.OperationalError(number, reason, sqlstate=state)
    found = translate_error(error, CONFIG)
    assert type(found) is expected and (code is None or found.code == code)
    assert "at row" not in str(found)


def test_closed_connections_and_other_errors() -> None:
    assert isinstance(translate_error(pymysql.err.InterfaceError(0, ""), CONFIG), Transient)
    assert translate_error(ValueError("no"), CONFIG) is None


def test_options_of_a_connection() -> None:
    assert (CONFIG.host, CONFIG.port, CONFIG.database) == ("db.example", 3306, "my shop")
    for url in "mysql://user:secret@db/shop", "mysql://db", "mysql://db/shop?ssl=1", "http://db/a":
        with pytest.raises(ValidationError):
            ConnectionConfig.model_validate({"url": url})


def test_types_of_mysql() -> None:
    texts = {
        "bigint(20) unsigned": pa.decimal128(20, 0), "int unsigned": pa.int64(),
        "tinyint(1)": pa.bool_(), "tinyint(4)": pa.int8(), "mediumint(9)": pa.int32(),
        "decimal(38,10)": pa.decimal128(38, 10), "decimal(39,0) unsigned": pa.string(),
        "enum('a','b')": pa.string(), "geometrycollection": pa.binary(), "year": pa.int16(),
    }  # fmt: skip
    found = {text: TYPES.field("c", text) for text in texts}
    assert {text: field and field.type for text, field in found.items()} == texts
    columns = pa.schema([("k", pa.string()), ("s", pa.string())])
    statement = DIALECT.create_table(TableName(("t",)), columns, ["k"])
    assert statement.startswith(
        "CREATE TABLE IF NOT EXISTS `t` (`k` VARCHAR(255) NOT NULL, `s` LONGTEXT, "
        "PRIMARY KEY (`k`)) ENGINE=InnoDB CHARACTER SET utf8mb4"
    )
