"""Rows of every type, and payloads that are wrong in every way."""

from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from penstock.sdk import Decoded, FileFormat, Format, Read

UTC = dt.UTC
INNER = pa.struct([pa.field("q", pa.int32()), pa.field("w", pa.string())])
FLAT = pa.schema(
    [
        ("tiny", pa.int8()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("real", pa.float32()),
        ("double", pa.float64()),
        ("money", pa.decimal128(18, 4)),
        ("exact", pa.decimal128(38, 10)),
        ("yes", pa.bool_()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
    ]
)
ALL = pa.schema(
    [
        *FLAT,
        ("list", pa.list_(pa.field("element", pa.float64()))),
        ("struct", INNER),
        ("structs", pa.list_(pa.field("element", INNER))),
        ("map", pa.map_(pa.string(), pa.int64())),
        ("blobs", pa.list_(pa.field("element", pa.binary()))),
    ]
)

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_floats = st.floats(allow_nan=False, width=64)
_inner = st.fixed_dictionaries({"q": st.none() | st.integers(-9, 9), "w": st.none() | _text})


def _whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    return st.integers(-most, most).map(lambda n: Decimal(n).scaleb(-scale, CONTEXT))


CONTEXT = __import__("decimal").Context(prec=60)
_times = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "tiny": _whole(8),
    "short": _whole(16),
    "int": _whole(32),
    "long": _whole(64),
    "real": st.floats(width=32, allow_nan=False),
    "double": _floats,
    "money": _decimals(18, 4),
    "exact": _decimals(38, 10),
    "yes": st.booleans(),
    "text": _text,
    "bytes": st.binary(max_size=8),
    "day": st.dates(),
    "at": _times.map(lambda t: t.replace(tzinfo=UTC)),
    "local": _times,
    "list": st.lists(st.none() | _floats, max_size=3),
    "struct": _inner,
    "structs": st.lists(st.none() | _inner, max_size=3),
    "map": st.dictionaries(_text, _whole(64), max_size=3).map(lambda d: list(d.items())),
    "blobs": st.lists(st.none() | st.binary(max_size=4), max_size=3),
}


def rows_of(schema: pa.Schema) -> st.SearchStrategy[pa.RecordBatch]:
    """Batches of a few rows, any of whose values may be null."""
    row = st.fixed_dictionaries({name: st.none() | VALUES[name] for name in schema.names})
    return st.lists(row, max_size=5).map(lambda rows: batch(rows, schema))


def batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def same(left: pa.RecordBatch, right: pa.RecordBatch) -> None:
    """Equal in every respect but the identity of NaN."""
    assert left.schema.equals(right.schema, check_metadata=False), f"{left.schema}\n{right.schema}"
    assert [f.nullable for f in left.schema] == [f.nullable for f in right.schema]
    left.validate(full=True)
    assert _plain(left.to_pylist()) == _plain(right.to_pylist())


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list) else value


def binary(payloads: list[bytes | None]) -> pa.BinaryArray:
    return pa.array(payloads, pa.binary())


def outcome(format_: Format[Any], payloads: list[bytes | None], schema: pa.Schema) -> Decoded:
    """Decodes, and checks what every decoding promises."""
    found = format_.decode(binary(payloads), schema)
    assert found.rows.schema.equals(schema)
    found.rows.validate(full=True)
    index = list(range(len(payloads))) if found[1] is None else found[1].to_pylist()
    assert len(index) == found.rows.num_rows
    failed = [f[0] for f in found.failures]
    assert failed == sorted(failed)
    assert sorted([*index, *failed]) == list(range(len(payloads)))
    for failure in found.failures:
        assert failure.error.message and "\n" not in failure.error.message
        assert len(failure.error.message) < 1000
        assert "Traceback" not in failure.error.message
    return found


def code(format_: Format[Any], payload: bytes | None, schema: pa.Schema) -> str:
    """The code of the error of one payload, or `ok`."""
    failures = outcome(format_, [payload], schema).failures
    return failures[0].error.code if failures else "ok"


def message(format_: Format[Any], payload: bytes | None, schema: pa.Schema) -> str:
    return outcome(format_, [payload], schema).failures[0].error.message


def read(
    format_: FileFormat[Any], content: bytes, schema: pa.Schema, **kwargs: Any
) -> tuple[list[dict[str, Any]], list[int], Read]:
    """All rows of a file, their positions, and what was rejected."""
    asked = Read(**kwargs)
    rows: list[dict[str, Any]] = []
    places: list[int] = []
    for some, numbers in format_.read_file(Forward(content), schema, "file", asked):
        assert some.schema.equals(schema)
        some.validate(full=True)
        rows += some.to_pylist()
        places += numbers.to_pylist()
    assert len(rows) == len(places)
    return rows, places, asked


def written(format_: FileFormat[Any], *batches: pa.RecordBatch) -> bytes:
    out = io.BytesIO()
    writer = format_.file_writer(out, batches[0].schema)
    for each in batches:
        writer.write(each)
    writer.close()
    return out.getvalue()


class Forward(io.RawIOBase):
    """A file that cannot be sought, and reads less than asked for."""

    def __init__(self, content: bytes, most: int = 70_000) -> None:
        self.inner = io.BytesIO(content)
        self.most = most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return self.inner.read()
        return self.inner.read(min(size, self.most))


TORTURE: list[bytes | None] = [
    None,
    b"",
    b" ",
    b"\n",
    b"\0",
    b"\0" * 100,
    b"\xff\xfe{\0}\0",
    b"\xfe\xff\0{",
    b"\xff" * 50,
    b"\xef\xbb\xbf",
    "é".encode("latin-1"),
    "{}".encode("utf-16"),
    b"{",
    b"}",
    b"[",
    b'"',
    b"'",
    b",",
    b"\\",
    b"{" * 10_000,
    b"[" * 10_000,
    b'{"a":' * 10_000,
    b'"' * 999,
    b"x" * 100_000,
    b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    bytes(range(256)),
    b"-",
    b"null",
    b"NaN",
    b'{"text":"\\ud800"}',
    b'{"text":"\\u0000"',
    b'{"int":"\\u0000"}',
    b"\r",
    b"\r\n",
    b"a\nb",
]
