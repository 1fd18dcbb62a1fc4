"""The transform `steps`, driven by hand with messages."""

from __future__ import annotations

import json
import pickle
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest

from penstock.core.errors import OptionError, RecordError, ValidationErrors, flatten_errors
from penstock.sdk import Carried, Context, Failure
from penstock.sdk.bisect_failures import FailedRow
from penstock.transforms.steps import Steps
from penstock.transforms.steps.config import StepsConfig
from penstock.transforms.steps.json_rows import decode_json, encode_json

DECODE = {"type": "decode", "codec": {"type": "json"}}
ENCODE = {"type": "encode", "codec": {"type": "json"}}


def sql(query: str, **options: Any) -> dict[str, Any]:
    return {"type": "sql", "query": query, **options}


def make(base: Path = Path(), **config: Any) -> Steps:
    transform = Steps(StepsConfig(**config), Context(base=base))
    transform.validate()
    return transform


def rows_of(transform: Steps, batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for part in transform.apply(batch) for row in part.to_pylist()]


def messages(*texts: str, **columns: Any) -> pa.RecordBatch:
    values = pa.array([text.encode() for text in texts], pa.binary())
    return pa.record_batch({"__value__": values, **columns})


def run(*texts: str, steps: list[dict[str, Any]], **config: Any) -> list[str]:
    found = rows_of(make(steps=steps, **config), messages(*texts))
    return [row["__payload__"].decode() for row in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT sum(v), v + 1, CAST(v AS STRING) FROM flow GROUP BY v",
         '{"sum(flow.v)":3,"flow.v + Int64(1)":4,"flow.v":"3"}'),
        ('SELECT "Big", V AS Low, v AS "High" FROM flow', '{"Big":1,"low":3,"High":3}'),
        ("SELECT v / 2 AS i, v / 0.0 AS f, a[1] AS first FROM flow",
         '{"i":1,"f":null,"first":"x"}'),
        ("SELECT concat(s, NULL, 'b') AS c FROM flow", '{"c":"ab"}'),
        ("SELECT regexp_replace('aXbX', 'X', '-') AS r FROM flow", '{"r":"a-bX"}'),
        ("SELECT x.v, y.* FROM flow x JOIN flow y ON x.v = y.v",
         '{"v":3,"Big":1,"v":3,"s":"a","a":["x","y"],"j":"{\\"k\\":[1,{\\"z\\":\\"q\\"}]}"}'),
        ("SELECT unnest(a) AS e, unnest([1, 2]) AS f FROM flow",
         '{"e":"x","f":1}|{"e":"y","f":2}'),
        ("SELECT DISTINCT ON (v) v FROM flow ORDER BY v", '{"v":3}'),
        ("SELECT date_bin(INTERVAL '1 hour', TIMESTAMP '2026-01-01T10:30:00') AS t FROM flow",
         '{"t":"2026-01-01T10:00:00"}'),
        ("SELECT arrow_typeof(v) AS t FROM flow", '{"t":"Int64"}'),
        ("SELECT j->'k'->1->>'z' AS q, json_get_int(j, 'k', 0) AS i FROM flow", '{"q":"q","i":1}'),
        ("SELECT json_get_int(j, 'k', 0), json_length(j) FROM flow",
         '{"json_get_int(flow.j,Utf8(\\"k\\"),Int64(0))":1,"json_length(flow.j)":1}'),
        ("SELECT json_length(j, 'k') AS n, json_contains(j, 'no') AS c FROM flow",
         '{"n":2,"c":false}'),
        ("SELECT json_get_json(j, 'k') AS a, json_get_str(j, 'k') AS s FROM flow",
         '{"a":"[1,{\\"z\\":\\"q\\"}]"}'),
    ],
)  # fmt: skip
def test_queries_are_those_of_datafusion(query: str, expected: str) -> None:
    row = {"Big": 1, "v": 3, "s": "a", "a": ["x", "y"], "j": '{"k":[1,{"z":"q"}]}'}
    assert run(json.dumps(row), steps=[DECODE, sql(query)]) == expected.split("|")


def test_each_message_is_a_batch() -> None:
    found = run(
        '{"v":1}\n{"v":2}', '{"v":3.5}', steps=[DECODE, sql("SELECT sum(v) AS s FROM flow")]
    )
    assert found == ['{"s":3}', '{"s":3.5}']


def test_a_failing_message_is_written_alone_and_as_received() -> None:
    transform = make(
        steps=[DECODE, sql("SELECT a FROM flow")],
        failures={"columns": {"error_topic": {"value": "t"}}},
    )
    found = rows_of(transform, messages('{"a": 1}', "not json", '{"b": 1}', '{"a": 2}'))
    assert [(row["__payload__"], row["__failed__"], row["error_topic"]) for row in found] == [
        (b'{"a":1}', False, None),
        (b"not json", True, "t"),
        (b'{"b": 1}', True, "t"),
        (b'{"a":2}', False, None),
    ]


def test_a_failing_message_is_a_dead_letter_without_failures() -> None:
    transform = make(steps=[DECODE])
    with pytest.raises(FailedRow) as failed:
        rows_of(transform, messages('{"a": 1}', "[1]"))
    assert (failed.value.index, failed.value.error.code) == (1, "not-an-object")


def test_a_batch_without_rows_sends_nothing_on() -> None:
    steps = [DECODE, sql("SELECT a FROM flow WHERE a > 1"), sql("SELECT count(*) FROM flow")]
    assert run('{"a":1}', '{"a":2}', steps=steps) == ['{"count(*)":1}']


def test_payload_of_undecoded_messages_is_kept() -> None:
    assert run("\x00 any", steps=[]) == ["\x00 any"]


def test_an_encoded_payload_replaces_the_old_one() -> None:
    steps = [DECODE, ENCODE, sql("SELECT a + 1 AS a, __value__ FROM flow"), ENCODE]
    assert run('{"a":1,"b":null}', steps=steps) == ['{"a":2}']


def test_windows_merge_messages_by_name() -> None:
    steps = [DECODE, sql("SELECT count(*) AS n, sum(b) AS b FROM flow")]
    values = ['{"a":1}', '{"b":2,"a":1}', '{"b":3}']
    assert run(*values, steps=steps, window={}) == ['{"n":3,"b":5}']
    assert run(*values, steps=steps, window={"rows": 2}) == ['{"n":2,"b":2}', '{"n":1,"b":3}']
    assert run(*values, steps=steps, window={"size": 2, "slide": 1}) == [
        '{"n":2,"b":2}', '{"n":2,"b":5}',
    ]  # fmt: skip
    assert run(*values, steps=steps, window={"size": 2, "slide": 2}) == [
        '{"n":2,"b":2}', '{"n":1,"b":3}',
    ]  # fmt: skip


def test_join_of_inputs_in_a_window() -> None:
    join = {"query": "SELECT * FROM a JOIN b ON a.id = b.id", "decode": {"type": "json"}}
    transform = make(inputs={"a": {}, "b": {}}, window={"join": join})
    batch = messages('{"id":1,"x":2}', '{"id":1,"y":3}', __input__=pa.array(["a", "b"]))
    assert rows_of(transform, batch) == [{"__payload__": b'{"id":1,"x":2,"id":1,"y":3}'}]
    assert rows_of(transform, batch.slice(0, 1)) == []


def test_merged_batches() -> None:
    steps = [DECODE, {"type": "merge", "count": 2}, sql("SELECT sum(a) AS s FROM flow")]
    assert run('{"a":1}', '{"a":2}', '{"a":4}', steps=steps) == ['{"s":3}', '{"s":4}']
    assert make(steps=steps).whole_batches


def test_python_functions() -> None:
    code = "def f(batch):\n    return [] if batch.num_rows > 1 else [batch, batch]"
    steps = [DECODE, {"type": "python", "code": code, "function": "f"}]
    assert run('{"a":1}', '{"a":1}\n{"a":2}', steps=steps) == ['{"a":1}'] * 2


def test_programs_in_vrl() -> None:
    steps = [DECODE, {"type": "vrl", "code": '.b = to_int!(.a) * 2\n[., {"a": "end"}]'}]
    transform = make(steps=steps, failures={})
    found = rows_of(transform, messages('{"a":"2"}', '{"a":"x"}'))
    assert [(row["__payload__"], row["__failed__"]) for row in found] == [
        (b'{"a":"2","b":4}', False), (b'{"a":"end"}', False), (b'{"a":"x"}', True),
    ]  # fmt: skip
    with pytest.raises(OptionError) as raised:
        make(steps=[{"type": "vrl", "code": ".a = \nnope("}])
    assert raised.value.option == ("steps", 0, "code")


def test_generated_messages() -> None:
    transform = make(
        inputs={"": {"payload": '{"v":1}', "repeat": 2, "total": 5}},
        steps=[DECODE, sql("SELECT count(*) AS n FROM flow")],
    )
    found = rows_of(transform, pa.record_batch({"counter": [0, 1, 2]}))
    assert [row["__payload__"] for row in found] == [b'{"n":2}', b'{"n":2}', b'{"n":1}']


def test_metadata_columns_have_their_types() -> None:
    transform = make(
        inputs={
            "": {
                "decode": {"type": "json"},
                "metadata": {
                    "m_partition": {"column": "partition", "type": "uint32"},
                    "m_key": {"column": "key", "type": "binary"},
                    "m_time": {"column": "timestamp", "type": "timestamp"},
                    "m_ext": {"map": {"topic": "topic"}},
                },
            }
        },
        steps=[sql("SELECT *, arrow_typeof(m_partition) AS t FROM flow")],
    )
    batch = messages(
        '{"a":1}', partition=pa.array([3], pa.int32()), key=pa.array([None], pa.binary()),
        timestamp=pa.array([datetime(2026, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        topic=pa.array(["t"]),
    )  # fmt: skip
    assert json.loads(rows_of(transform, batch)[0]["__payload__"]) == {
        "a": 1, "m_partition": 3, "m_time": "2026-01-02T00:00:00", "m_ext": {"topic": "t"},
        "t": "UInt32",
    }  # fmt: skip


def test_expressions_of_columns() -> None:
    transform = make(
        steps=[DECODE],
        output={"columns": {"topic": {"expr": "concat('t/', a)"}, "key": {"value": "k"}}},
        failures={},
    )
    found = rows_of(transform, messages('{"a":1}\n{"a":2}', '{"a":null}'))
    assert [(row["topic"], row["key"], row["__failed__"]) for row in found] == [
        ("t/1", "k", False), ("t/2", "k", False), ("t/", "k", False),
    ]  # fmt: skip


def test_a_null_expression_fails() -> None:
    transform = make(steps=[DECODE], output={"columns": {"t": {"expr": "a"}}}, failures={})
    found = rows_of(transform, messages('{"a":"x"}\n{"a":null}'))
    assert [row["__failed__"] for row in found] == [True]


def test_declared_rows() -> None:
    transform = make(steps=[DECODE], output={"rows": "a BIGINT, b STRING, v VARIANT"}, failures={})
    transform = pickle.loads(pickle.dumps(transform))
    found = rows_of(transform, messages('{"a":1,"c":2,"v":"x"}', "x"))
    assert [(row["a"], row["b"], row["v"], row["__payload__"]) for row in found] == [
        (1, None, '"x"', None), (None, None, None, b"x"),
    ]  # fmt: skip


def test_a_value_of_another_type_fails() -> None:
    transform = make(steps=[DECODE], output={"rows": "a INT"}, failures={})
    found = rows_of(transform, messages('{"a":"x"}', '{"a":3000000000}', '{"a":1}'))
    assert [(row["a"], row["__failed__"]) for row in found] == [
        (None, True), (None, True), (1, False),
    ]  # fmt: skip


def test_inferred_rows() -> None:
    transform = make(
        inputs={"": {"payload": '{"v":1,"s":"x"}'}},
        steps=[DECODE, sql("SELECT s, arrow_cast(v, 'UInt32') AS v, '1' AS t FROM flow")],
        output={"infer": True},
    )
    expected = pa.schema([("s", pa.string()), ("v", pa.int64()), ("t", pa.string())])
    assert transform.output(pa.schema([])).equals(expected)
    found = rows_of(transform, pa.record_batch({"counter": [0]}))
    assert found == [{"s": "x", "v": 1, "t": "1"}]


def test_debezium() -> None:
    event = {"op": "u", "ts_ms": 5, "before": {"id": 1}, "after": {"id": 2},
             "source": {"db": "d", "table": "t"}}  # fmt: skip
    steps = [{"type": "decode", "codec": {"type": "debezium_json"}},
             sql("SELECT id, op, source_table, before FROM flow")]  # fmt: skip
    expected = '{"id":2,"op":"u","source_table":"t","before":"{\\"id\\":1}"}'
    assert run(json.dumps(event), json.dumps({"payload": event}), steps=steps) == [expected] * 2


@pytest.mark.slow
def test_protobuf(tmp_path: Path) -> None:
    (tmp_path / "m.proto").write_text(
        'syntax = "proto3"; package a; message M { int32 a = 1; repeated string b = 2; }'
    )
    codec = {"type": "protobuf", "files": ["."], "message": "a.M"}
    steps = [DECODE, {"type": "encode", "codec": codec}, {"type": "decode", "codec": codec}]
    transform = make(tmp_path, steps=steps)
    (row,) = rows_of(transform, messages('{"a":3,"b":["x"]}'))
    assert json.loads(row["__payload__"]) == {"a": 3, "b": ["x"]}
    steps[1]["codec"] = {**codec, "files": ["m.proto"]}
    make(tmp_path, steps=steps)


def test_files(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2]})
    (tmp_path / "x.json").write_text('{"a":1}\n{"a":2}\n')
    (tmp_path / "x.csv").write_text("a\n1\n2\n")
    parquet.write_table(table, tmp_path / "x.parquet")
    feather.write_feather(table, str(tmp_path / "x.arrow"), compression="uncompressed")
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    with (tmp_path / "x.avro").open("wb") as file:
        fastavro.writer(file, schema, table.to_pylist())
    for format_ in ("json", "csv", "parquet", "arrow", "avro"):
        files = {"path": f"x.{format_}", "format": format_, "query": "SELECT a + 1 AS a FROM flow"}
        transform = make(tmp_path, inputs={"": {"files": files}})
        found = rows_of(transform, pa.record_batch({"run": [1]}))
        assert [row["__payload__"] for row in found] == [b'{"a":2}', b'{"a":3}']


def test_a_missing_file_is_an_error_of_the_plan(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no file x\.csv") as raised:
        make(tmp_path, inputs={"": {"files": {"path": "x.csv", "format": "csv"}}})
    assert raised.value.option == ("inputs", "", "files", "path")


def test_tables_of_databases(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    connection.close()
    with duckdb.connect(str(tmp_path / "d.db")) as other:
        other.execute("CREATE TABLE t AS SELECT 1 AS id, 'a' AS name UNION ALL SELECT 2, NULL")
    for type_, name in (("sqlite", "x.db"), ("duckdb", "d.db")):
        tables = {"type": type_, "path": str(tmp_path / name),
                  "query": "SELECT * FROM flow.main.t ORDER BY id DESC"}  # fmt: skip
        transform = make(inputs={"": {"tables": tables}})
        found = rows_of(transform, pa.record_batch({"run": [1]}))
        assert [row["__payload__"] for row in found] == [b'{"id":2}', b'{"id":1,"name":"a"}']
    target = {"type": "sqlite", "path": str(tmp_path / "x.db"), "table": "t", "columns": ["name"]}
    transform = make(steps=[DECODE], output={"target": target})
    assert rows_of(transform, messages('{"id":1,"name":"z"}')) == [{"name": "z"}]
    for wrong, option in (({"table": "u"}, ("table",)), ({"columns": ["nam"]}, ("columns", 0))):
        with pytest.raises(OptionError) as raised:
            rows_of(make(steps=[DECODE], output={"target": target | wrong}), messages("{}"))
        assert raised.value.option == ("output", "target", *option)


@pytest.mark.parametrize(
    ("step", "option"),
    [
        (sql("SELEC 1"), ("steps", 0, "query")),
        (sql("DROP TABLE flow"), ("steps", 0, "query")),
        ({"type": "python", "code": "def g(): pass", "function": "f"}, ("steps", 0, "code")),
        ({"type": "decode", "codec": {"type": "protobuf", "files": ["no"], "message": "M"}},
         ("steps", 0, "codec", "files", 0)),
    ],
)  # fmt: skip
def test_wrong_texts_are_errors_of_the_plan(step: dict[str, Any], option: tuple[Any, ...]) -> None:
    with pytest.raises((OptionError, ValidationErrors)) as raised:
        make(steps=[step])
    (error,) = flatten_errors(raised.value)
    assert isinstance(error, OptionError)
    assert error.option == option


def test_json_texts() -> None:
    payload = b'{"i":1,"f":1.5,"s":"\xc3\xa4","l":[1,2],"o":{"n":null},"t":true,"z":null}'
    assert encode_json(decode_json([payload])) == [
        '{"i":1,"f":1.5,"s":"ä","l":[1,2],"o":{},"t":true}'.encode()
    ]
    for wrong in (b"", b"1", b'{"a":NaN}', b'{"a":1} x', b"\xff", None):
        with pytest.raises(RecordError):
            decode_json([wrong])
    with pytest.raises(RecordError, match="more than 64 bits"):
        decode_json([b'{"a":100000000000000000000}'])
    with pytest.raises(RecordError, match="different types"):
        decode_json([b'{"a":1}\n{"a":"x"}'])
    times = pa.record_batch({
        "b": pa.array([b"\x01\xff"]), "d": pa.array([1], pa.date32()),
        "t": pa.array([1_500_000], pa.timestamp("us")),
        "u": pa.array([0], pa.timestamp("ns", "UTC")), "n": pa.array([float("nan")]),
    })  # fmt: skip
    assert encode_json(times) == [
        b'{"b":"01ff","d":"1970-01-02","t":"1970-01-01T00:00:01.500","u":"1970-01-01T00:00:00Z",'
        b'"n":null}'
    ]


MODULE = """\
(module (memory (export "memory") 1)
  (global $free (mut i32) (i32.const 1024))
  (func (export "alloc") (param i32) (result i32) (global.get $free)
    (global.set $free (i32.add (global.get $free) (local.get 0))))
  (func (export "dealloc") (param i32 i32) (global.set $free (i32.const 1024)))
  (func (export "echo") (param i32 i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32))
      (i64.extend_i32_u (local.get 1))))
  (func (export "endless") (param i32 i32) (result i64) (loop (br 0)) (i64.const 0)))
"""


def test_modules_of_webassembly(tmp_path: Path) -> None:
    (tmp_path / "m.wat").write_text(MODULE)
    step = {"type": "wasm", "module": "m.wat", "function": "echo"}
    rows = rows_of(make(tmp_path, steps=[DECODE, step]), messages('{"a": 1}', '{"a": "x"}'))
    assert [row["__payload__"] for row in rows] == [b'{"a":1}', b'{"a":"x"}']
    endless = make(tmp_path, steps=[DECODE, {**step, "function": "endless"}])
    with pytest.raises(FailedRow) as failed:
        rows_of(endless, messages('{"a": 1}'))
    assert "all fuel consumed" in str(failed.value.error)
    for changed, message in (
        ({"function": "ech"}, 'exports no "ech"'),
        ({"module": "n.wat"}, "cannot load the module n.wat"),
    ):
        with pytest.raises((OptionError, ValidationErrors), match=message):
            make(tmp_path, steps=[DECODE, {**step, **changed}])


def test_sliding_windows_carry_messages(tmp_path: Path) -> None:
    def run_batch(*texts: str, **window: Any) -> tuple[list[int], list[int], list[int]]:
        steps = [DECODE, sql("SELECT count(*) AS n, max(v) AS v FROM flow")]
        made = make(window={"size": 3, "slide": 2, **window}, steps=steps)
        results = list(made.apply(messages(*texts)))
        batches = [each for each in results if isinstance(each, pa.RecordBatch)]
        rows = [json.loads(row["__payload__"])["n"] for b in batches for row in b.to_pylist()]
        carried = [each.index for each in results if isinstance(each, Carried)]
        return rows, carried, [each.index for each in results if isinstance(each, Failure)]

    texts = [f'{{"v": {number}}}' for number in range(6)]
    assert run_batch(*texts) == ([3, 3, 2], [], [])
    assert run_batch(*texts, rest="keep") == ([3, 3], [4, 5], [])
    assert run_batch(*texts[:2], rest="keep") == ([], [0, 1], [])
    assert run_batch(*texts[:3], "no", rest="keep") == ([3], [2, 3], [])
    failing = [*texts[:2], "no", *texts[3:]]
    assert run_batch(*failing, rest="keep") == ([], [4, 5], [0, 1, 2, 3, 4])


def test_a_join_leaves_out_messages_that_cannot_be_decoded() -> None:
    join = {"query": "SELECT a.v AS v FROM a JOIN b ON a.id = b.id", "decode": {"type": "json"}}
    made = make(inputs={"a": {}, "b": {}}, window={"join": join})
    batch = messages(
        '{"id": 1, "v": 5}', "no", '{"id": 1}', __input__=pa.array(["a", "a", "b"])
    )  # fmt: skip
    first, second = made.apply(batch)
    assert isinstance(first, Failure) and first.index == 1
    assert isinstance(second, pa.RecordBatch)
    assert second.to_pylist() == [{"__payload__": b'{"v":5}'}]
