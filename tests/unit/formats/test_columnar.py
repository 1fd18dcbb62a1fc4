from __future__ import annotations

import io
from typing import Any

import format_samples as samples
import pyarrow as pa
import pytest
from format_samples import ALL, TORTURE, Forward, batch, same, written
from hypothesis import given, settings
from pyarrow import ipc, parquet

from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk import Read
from penstock.sdk.columns.conform import MissingValue, conform

FORMATS = [
    Parquet(ParquetConfig()),
    Parquet(ParquetConfig(row_group_rows=2, compression="snappy")),
    Arrow(ArrowConfig()),
    Arrow(ArrowConfig(layout="stream", compression="none")),
]
A = pa.schema([("a", pa.int32()), ("b", pa.string())])


def read(
    format_: Any, content: bytes, schema: pa.Schema, **kwargs: Any
) -> tuple[Any, list[int], Read]:
    asked = Read(**kwargs)
    file = io.BytesIO(content) if format_.needs_seek else Forward(content)
    found = list(format_.read_file(file, schema, "file", asked))
    places = [n for _, numbers in found for n in numbers.to_pylist()]
    assert all(some.schema.equals(schema) for some, _ in found)
    return [row for some, _ in found for row in some.to_pylist()], places, asked


@pytest.mark.quick(1)
@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=15, deadline=None)
@given(rows=samples.rows_of(ALL))
def test_round_trip(format_: Any, rows: pa.RecordBatch) -> None:
    content = written(format_, rows, rows)
    found, places, asked = read(format_, content, ALL)
    same(batch(found[: rows.num_rows], ALL), rows)
    assert places == list(range(1, 2 * rows.num_rows + 1)) and not asked.bad
    assert format_.infer_file(io.BytesIO(content)).equals(ALL)


@pytest.mark.parametrize("format_", FORMATS)
def test_other_columns_and_types(format_: Any) -> None:
    table = pa.table(
        {
            "x": [1, 2, 3],
            "a": pa.array([1, 2**40, 3]),
            "b": pa.array(["p", "q", None]).dictionary_encode(),
        }
    )
    out = io.BytesIO()
    if isinstance(format_, Parquet):
        parquet.write_table(table, out)
    else:
        with ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    rows, places, asked = read(format_, out.getvalue(), pa.schema([*A, ("c", pa.date32())]))
    assert rows == [{"a": 1, "b": "p", "c": None}, {"a": 3, "b": None, "c": None}] and places == [
        1,
        3,
    ]
    assert [(bad.position, bad.error.code) for bad in asked.bad] == [(2, "wrong-type")]
    rows, _, asked = read(format_, out.getvalue(), A, columns=frozenset(["b"]))
    assert [row["a"] for row in rows] == [None] * 3 and not asked.bad
    assert len(read(format_, out.getvalue(), A, columns=frozenset())[0]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("format_", FORMATS)
def test_torture(format_: Any) -> None:
    content = written(format_, batch([{"a": i, "b": "x" * i} for i in range(50)], A))
    for payload in [
        *TORTURE,
        content[:-20],
        content[: len(content) // 2],
        content[:9],
        content[50:],
    ]:
        rows, _, asked = read(format_, payload or b"", A)
        assert rows == [] or len(rows) == 50 or asked.bad
        format_.infer_file(io.BytesIO(payload or b""))
    for place in range(0, len(content), 7):
        broken = bytearray(content)
        broken[place] ^= 0x55
        read(format_, bytes(broken), A)


def test_a_broken_tail_keeps_what_was_read() -> None:
    format_ = FORMATS[3]
    content = written(format_, *[batch([{"a": i, "b": "x"}], A) for i in range(10)])
    rows, _, asked = read(format_, content[:-150], A)
    assert 0 < len(rows) < 10 and [bad.position for bad in asked.bad] == [len(rows)]


def test_conform() -> None:
    inner = pa.struct([pa.field("q", pa.int32(), nullable=False)])
    target = pa.schema(
        [
            ("l", pa.list_(pa.field("element", inner, nullable=False))),
            ("m", pa.map_(pa.string(), inner)),
        ]
    )
    given_ = pa.table(
        {
            "l": pa.array(
                [[{"q": 1}, {"q": 2}], None, [], [{"q": 3}]],
                pa.large_list(pa.struct([("q", pa.int64())])),
            ),
            "m": pa.array(
                [[("k", {"q": 1, "z": 0})], [], None, [("j", None)]],
                pa.map_(pa.string(), pa.struct([("q", pa.int8()), ("z", pa.int8())])),
            ),
        }
    )
    for start in range(4):
        found = conform(given_.slice(start), target)
        assert found.schema.equals(target)
        found.validate(full=True)
        expected = given_.slice(start).to_pylist()
        assert found.column("l").to_pylist() == [row["l"] for row in expected]
        assert [m and m[0][0] for m in found.column("m").to_pylist()] == [
            m["m"] and m["m"][0][0] for m in expected
        ]
    with pytest.raises(MissingValue, match='"q"'):
        conform(pa.table({"l": [[{"q": None}]], "m": pa.nulls(1)}), target)
    with pytest.raises(pa.ArrowInvalid):
        conform(pa.table({"a": [1.5], "b": ["x"]}), A)
    assert conform(pa.table({"a": [1.0]}), A).to_pylist() == [{"a": 1, "b": None}]
