"""Names, statements and cursors of SQL databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.core.errors import PlanError
from penstock.sdk.database import Cursor, Dialect, TableName, TypeMap
from penstock.sdk.database.cursor import decode, encode

TYPES = TypeMap(
    "Sample", {"int64": "BIGINT", "string": "TEXT", "decimal": "NUMERIC({precision},{scale})",
               "list": "{element}[]"}, [],
)  # fmt: skip
DIALECT = Dialect(TYPES)
MYSQL = Dialect(TYPES, quotation="`", parameter="%s", upsert_clause="on_duplicate_key")
ORDERS = TableName(("shop", "orders"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders", ["orders"]),
        ("public.orders", ["public", "orders"]),
        ('"My Schema"."a.b"', ["My Schema", "a.b"]),
        ('"q""uote"', ['q"uote']),
        ("`a``b`.c", ["a`b", "c"]),
        ("größe.😀", ["größe", "😀"]),
    ],
)
def test_names_of_tables(text: str, parts: list[str]) -> None:
    assert TableName.parse(text).parts == tuple(parts)


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", 'a"b"', '"a', '"a"b', " ", "a..b"])
def test_invalid_names_of_tables(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        TableName.parse(text)


def test_names_are_quoted() -> None:
    hostile = 'x"; DROP TABLE orders; --'
    columns = pa.schema([(hostile, pa.int64())])
    quoted = '"x""; DROP TABLE orders; --"'
    assert DIALECT.insert(TableName((hostile,)), columns.names) == (
        f"INSERT INTO {quoted} ({quoted}) VALUES (?)"
    )
    assert DIALECT.create_table(TableName(("t",)), columns, (hostile,)) == (
        f'CREATE TABLE IF NOT EXISTS "t" ({quoted} BIGINT NOT NULL, PRIMARY KEY ({quoted}))'
    )
    assert MYSQL.quote("a`b") == "`a``b`"


def test_upserts() -> None:
    insert = 'INSERT INTO "shop"."orders" ("id", "n") VALUES (?, ?) ON CONFLICT ("id") DO'
    assert DIALECT.upsert(ORDERS, ["id", "n"], ["id"]) == f'{insert} UPDATE SET "n" = excluded."n"'
    assert DIALECT.upsert(ORDERS, ["id", "n"], ["id", "n"]) == (
        f"{insert} NOTHING".replace('("id") DO', '("id", "n") DO')
    )
    insert = "INSERT INTO `shop`.`orders` (`id`, `n`) VALUES (%s, %s) ON DUPLICATE KEY UPDATE"
    assert MYSQL.upsert(ORDERS, ["id", "n"], ["id"]) == f"{insert} `n` = VALUES(`n`)"
    assert MYSQL.upsert(ORDERS, ["id", "n"], ["id", "n"]) == (
        f"{insert} `id` = VALUES(`id`), `n` = VALUES(`n`)"
    )


def test_types_of_columns() -> None:
    numbers = pa.field("p", pa.list_(pa.decimal128(12, 3)))
    assert TYPES.column_type(numbers) == "NUMERIC(12,3)[]"
    for type_ in (pa.duration("us"), pa.list_(pa.float32())):
        with pytest.raises(PlanError, match='column "p": Sample has no type for') as caught:
            TYPES.column_type(pa.field("p", type_))
        assert caught.value.code == "unsupported-type"


def test_ranges_of_a_cursor() -> None:
    cursor = Cursor('"t"', ("at", "id"), DIALECT, "old")
    order = 'ORDER BY "at" ASC, "id" ASC'
    assert cursor.last(None) == (
        'SELECT "at", "id" FROM "t" WHERE old ORDER BY "at" DESC, "id" DESC LIMIT 1', ()
    )  # fmt: skip
    assert cursor.rows('"n"', (1, 2), (3, 4)) == (
        'SELECT "n" FROM "t" WHERE ("at", "id") > (?, ?) AND ("at", "id") <= (?, ?) ' + order,
        (1, 2, 3, 4),
    )
    query, parameters = cursor.limited(None, (3, 4), 5)
    assert parameters == (3, 4)
    assert query == (
        f'SELECT "at", "id" FROM (SELECT "at", "id" FROM "t" WHERE ("at", "id") <= (?, ?) {order} '
        'LIMIT 5) "penstock_rows" ORDER BY "at" DESC, "id" DESC LIMIT 1'
    )


def test_ranges_of_the_first_column_where_indexes_do_not_serve_rows() -> None:
    cursor = Cursor('"t"', ("at", "id"), replace(DIALECT, indexes_rows=False))
    query, parameters = cursor.count((1, 2), (3, 4))
    assert query == (
        'SELECT count(*) FROM "t" WHERE ("at", "id") > (?, ?) AND "at" >= ? '
        'AND ("at", "id") <= (?, ?) AND "at" <= ?'
    )
    assert parameters == (1, 2, 1, 3, 4, 3)
    assert cursor.count((1,), (3,))[1] == (1, 3)


def test_rows_compared_column_by_column_and_another_clause_for_limits() -> None:
    dialect = replace(DIALECT, compares_rows=False, limit="FETCH FIRST {count} ROWS ONLY")
    cursor = Cursor('"t"', ("a", "b", "c"), dialect)
    query, parameters = cursor.first("*", (1, 2, 3), 7)
    assert query == (
        'SELECT * FROM "t" WHERE (("a" > ?) OR ("a" = ? AND "b" > ?) OR '
        '("a" = ? AND "b" = ? AND "c" > ?)) AND "a" >= ? '
        'ORDER BY "a" ASC, "b" ASC, "c" ASC FETCH FIRST 7 ROWS ONLY'
    )
    assert parameters == (1, 1, 2, 1, 2, 3, 1)
    query, parameters = replace(cursor, columns=("a", "b")).count(None, (1, 2))
    assert query == (
        'SELECT count(*) FROM "t" WHERE (("a" < ?) OR ("a" = ? AND "b" <= ?)) AND "a" <= ?'
    )
    assert parameters == (1, 1, 2, 1)


def test_columns_that_may_have_nulls() -> None:
    assert Cursor('"t"', ("at", "id"), DIALECT).nulls() is None
    some = Cursor('"t"', ("at", "id"), DIALECT, nullable=("at",))
    assert some.nulls() == 'SELECT 1 FROM "t" WHERE "at" IS NULL LIMIT 1'


def test_offsets_of_a_cursor() -> None:
    values = (
        1, 2.5, "x", True, b"\x00\xff", Decimal("1.10"), date(2024, 2, 29),
        datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1),
    )  # fmt: skip
    assert decode(encode(values)) == values
    assert decode(encode(None)) is None and decode(encode(())) == ()
