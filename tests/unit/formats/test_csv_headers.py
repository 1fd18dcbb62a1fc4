"""Headers and encodings of CSV files."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from format_samples import binary, read
from pydantic import ValidationError

from penstock.core.errors import DecodeError, Permanent, PlanError
from penstock.formats.csv import Csv, CsvConfig
from penstock.sdk import Read

ORDERS = pa.schema([("id", pa.int64()), ("customer", pa.string()), ("price", pa.float64())])
ONE = [{"id": 1, "customer": "ann", "price": 2.5}]


def csv(**options: Any) -> Csv:
    return Csv(CsvConfig(**options))


def error_of(content: bytes, schema: pa.Schema = ORDERS, **options: Any) -> Permanent:
    with pytest.raises(Permanent) as raised:
        read(csv(**options), content, schema)
    assert raised.value.message.startswith("cannot read file: expected ")
    return raised.value


@pytest.mark.parametrize(
    "header",
    [
        "ID,CUSTOMER,PRICE",
        "Id, Customer ,price",
        "id,customer,price,Customer",
        "id,ID,customer,price",
    ],
)
def test_case_of_names_is_ignored(header: str) -> None:
    values = {"id": "1", "customer": "ann", "price": "2.5"}
    line = ",".join(
        values.get(name.strip().lower(), "") if index < 4 else "9"
        for index, name in enumerate(header.split(","))
    )
    rows, _, _ = read(csv(), f"{header}\n{line}\n".encode(), ORDERS)
    assert rows == ONE


def test_exact_name_is_preferred() -> None:
    rows, _, _ = read(csv(), b"ID,id,customer,price\n7,1,ann,2.5\n", ORDERS)
    assert rows == ONE


def test_names_that_differ_by_case_are_ambiguous() -> None:
    error = error_of(b"Id,ID,customer,price\n1,2,ann,2.5\n")
    assert error.code == "ambiguous-column"
    assert 'one column "id" in the header, found "Id", "ID"' in error.message


def test_missing_column_is_an_error_with_the_nearest_name() -> None:
    error = error_of(b"id,custmer,price\n1,ann,2.5\n")
    assert error.code == "missing-column"
    assert error.message.endswith(
        'expected the column "customer" in the header, found "id", "custmer", "price"'
    )
    assert error.hint == 'did you mean "custmer"? For nulls set missing_columns: null.'
    error = error_of(b"id,custmer,prices,x\n")
    assert 'the columns "customer", "price" in' in error.message
    assert error.hint is not None
    assert error.hint.startswith('did you mean "custmer" for "customer", "prices" for "price"?')
    assert error_of(b"id,price\n").hint == "For nulls set missing_columns: null."


@pytest.mark.parametrize("written", [None, "null"])
def test_missing_columns_are_null_on_request(written: str | None) -> None:
    rows, _, _ = read(csv(missing_columns=written), b"ID,total\n1,3\n", ORDERS)
    assert rows == [{"id": 1, "customer": None, "price": None}]


def test_column_not_null_cannot_be_missing() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("customer", pa.string())])
    error = error_of(b"customer\nann\n", schema, missing_columns=None)
    assert error.code == "missing-column"
    assert error.hint == "For nulls remove NOT NULL and set missing_columns: null."


@pytest.mark.parametrize("missing", ["error", None])
@pytest.mark.parametrize(
    ("content", "options", "hint"),
    [
        (b"id;customer;price\n1;ann;2.5\n", {}, 'Set delimiter: ";".'),
        (b"id\tcustomer\tprice\n", {}, 'Set delimiter: "\\t".'),
        (b"id,customer,price\n", {"delimiter": ";"}, 'Set delimiter: ",".'),
        (b"1,ann,2.5\n2,bob,3\n", {}, "Set header: false"),
        (b"Export of 1 May\nid,customer,price\n", {}, "Set delimiter and encoding"),
        ("id,customer,price\n".encode("utf-16-le"), {}, "Set encoding: utf-16-le."),
        ("id,customer,price\n".encode("utf-16-be"), {}, "Set encoding: utf-16-be."),
        ("id,customer\n".encode("utf-16"), {"encoding": "latin-1"}, "Set encoding: utf-16-le."),
    ],
)
def test_header_without_any_column(
    content: bytes, options: dict[str, Any], hint: str, missing: str | None
) -> None:
    error = error_of(content, missing_columns=missing, **options)
    assert error.code == "wrong-header"
    assert 'a header with the columns "id", "customer", "price", found "' in error.message
    assert error.message.isprintable()
    assert error.hint is not None and error.hint.startswith(hint)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le-bom", "utf-16-be-bom"]
)
def test_byte_order_mark_determines_the_encoding(encoding: str) -> None:
    text = "id,customer,price\n1,é☂,2.5\n"
    if encoding.endswith("-bom"):
        text, encoding = "\ufeff" + text, encoding.removesuffix("-bom")
    content = text.encode(encoding)
    assert read(csv(), content, ORDERS)[0] == [{**ONE[0], "customer": "é☂"}]
    inferred = csv().infer_file(io.BytesIO(content))
    assert inferred is not None and inferred.names == ORDERS.names
    assert csv().header(io.BytesIO(content)) == b"id,customer,price"


@pytest.mark.parametrize("content", [b"", b"i", b"\xff\xfe", b"id"])
def test_files_shorter_than_a_byte_order_mark(content: bytes) -> None:
    schema = pa.schema([("id", pa.int64()), ("i", pa.int64())])
    assert read(csv(missing_columns=None), content, schema)[0] == []


def test_encoding_is_an_option() -> None:
    content = "id,customer,price\n1,é,2.5\n".encode("utf-16-le")
    rows, _, _ = read(csv(encoding="utf-16-le"), content, ORDERS)
    assert rows == [{**ONE[0], "customer": "é"}]
    with pytest.raises(ValidationError, match="expected auto, or an encoding"):
        csv(encoding="utf-17")


def test_missing_column_of_a_dead_letter_is_an_error_of_the_record() -> None:
    with pytest.raises(DecodeError, match='expected the column "price"'):
        list(csv().read_record(b"1,ann", b"id,customer", ORDERS, "file", Read()))


def test_option_columns_without_a_declared_column() -> None:
    short = csv(columns=["id", "custmer", "price"], header=False)
    for attempt in (
        lambda: short.decode(binary([b"1,ann,2.5"]), ORDERS),
        lambda: read(short, b"1,ann,2.5\n", ORDERS),
    ):
        with pytest.raises(
            PlanError, match='expected the column "customer" in the option'
        ) as raised:
            attempt()
        assert raised.value.hint == 'did you mean "custmer"? For nulls set missing_columns: null.'
    nulls = csv(columns=["id", "price"], header=False, missing_columns=None)
    assert read(nulls, b"1,2.5\n", ORDERS)[0] == [{"id": 1, "customer": None, "price": 2.5}]


def test_json_schema_allows_null() -> None:
    schema = CsvConfig.model_json_schema()["properties"]["missing_columns"]
    assert schema["enum"] == ["error", "null", None] and json.dumps(schema)


def test_header_in_another_encoding() -> None:
    content = "id,größe\n1,2\n".encode("latin-1")
    sizes = pa.schema([("id", pa.int64()), ("größe", pa.int64())])
    error = error_of(content, sizes)
    assert error.message.endswith(
        '"größe" in the header, found a header that is not UTF-8: byte 0xf6'
    )
    hint = "Set encoding to that of the file, as in encoding: latin-1."
    assert (error.code, error.hint) == ("wrong-header", hint)
    assert error_of(content, sizes.remove(0)).hint == hint
    with pytest.raises(PlanError, match="the header is not UTF-8: byte 0xf6") as inferred:
        csv().infer_file(io.BytesIO(content))
    assert inferred.value.hint == hint
    assert read(csv(), content, sizes.remove(1))[0] == [{"id": 1}]
    assert read(csv(encoding="latin-1"), content, sizes)[0] == [{"id": 1, "größe": 2}]
