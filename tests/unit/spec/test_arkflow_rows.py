"""Rows of ArkFlow's streams, whose steps are driven by hand."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ruamel.yaml import YAML

from penstock.sdk import Context
from penstock.spec.load import load
from penstock.transforms.steps import Steps
from penstock.transforms.steps.config import StepsConfig

CASES = YAML(typ="safe").load(Path(__file__).with_name("arkflow_rows.yaml").read_text())
_SELECT = re.compile(r"'([^']*)' AS __input__ FROM `(\w+)`")


def stream_of(case: dict[str, Any]) -> dict[str, Any]:
    """Returns the stream of a case."""
    given = case["input"]
    if isinstance(given, str):
        messages = [line.replace("}/{", "}\n{") for line in given.splitlines()]
        given = {"type": "memory", "messages": messages}
    if "codec" in case:
        given["codec"] = case["codec"]
    decode = [] if "raw" in case else [{"type": "json_to_arrow"}]
    queries = [{"type": "sql", "query": query} for query in case.get("queries", ())]
    return {
        "input": given, "pipeline": {"processors": case.get("processors", [*decode, *queries])},
        "output": case.get("output", {"type": "stdout"}), "error_output": {"type": "stdout"},
        **({"buffer": case["buffer"]} if "buffer" in case else {}),
    }  # fmt: skip


def rows_of_source(source: dict[str, Any]) -> pa.RecordBatch:
    """Returns the rows of a source of messages, of generated messages, or of files."""
    if source["type"] == "impulse":
        return pa.record_batch({"counter": range(source["rows"])})
    payloads = source.get("payloads")
    if payloads is None:
        return pa.RecordBatch.from_pylist(source["rows"])
    return pa.record_batch({"__value__": pa.array([each.encode() for each in payloads])})


def rows_of_inputs(data: dict[str, Any], name: str) -> pa.RecordBatch:
    """Returns the rows of all inputs of a stream."""
    if name in data["sources"]:
        return rows_of_source(data["sources"][name])
    tables = []
    for name_of_input, source in _SELECT.findall(data["transforms"][name]["sql"]):
        rows = rows_of_source(data["sources"][source])
        names = pa.array([name_of_input] * len(rows))
        tables.append(pa.Table.from_batches([rows.append_column("__input__", names)]))
    batch: pa.RecordBatch = pa.concat_tables(tables).combine_chunks().to_batches()[0]
    return batch


def run(directory: Path, *streams: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Returns the payloads of the outputs and of the error outputs of streams."""
    path = directory / "streams.json"
    path.write_text(json.dumps({"streams": streams}))
    parsed = load([path])
    assert [str(error) for error in parsed.errors] == []
    found: tuple[list[Any], list[Any]] = ([], [])
    for name, node in parsed.data["transforms"].items():
        if node["type"] != "steps":
            continue
        options = {key: value for key, value in node.items() if key not in {"type", "from"}}
        steps = Steps(StepsConfig(**options), Context(node=name, base=directory))
        steps.validate()
        for batch in steps.apply(rows_of_inputs(parsed.data, node["from"])):
            assert isinstance(batch, pa.RecordBatch)
            for row in batch.to_pylist():
                found[row.get("__failed__", False)].append(row["__payload__"].decode())
    return found


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_rows(tmp_path: Path, case: dict[str, Any]) -> None:
    rows, errors = run(tmp_path, stream_of(case))
    assert [json.loads(row) for row in rows] == [json.loads(row) for row in case["rows"]]
    assert errors == case.get("errors", [])


def test_exact_numbers(tmp_path: Path) -> None:
    case = {"input": "{}", "queries": ["SELECT cast('0.1000' AS decimal(30, 4)) AS n"]}
    assert run(tmp_path, stream_of(case))[0] == ['{"n":0.1000}']


def test_files_of_a_pattern(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.csv").write_text(f"a\n{number}\n")
    files = {"type": "csv", "path": str(tmp_path / "[12].csv")}
    query = {"query": "SELECT sum(a) FROM flow"}
    case = {"input": {"type": "file", "input_type": files, "query": query}, "processors": []}
    assert run(tmp_path, stream_of(case))[0] == ['{"sum(flow.a)":3}']


def test_tables_by_their_names_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.executescript(
            'CREATE TABLE u (id INT); INSERT INTO u VALUES (1), (2); CREATE TABLE "V" (id INT);'
            'INSERT INTO "V" VALUES (2);'
        )
    query = 'WITH w AS (SELECT * FROM U) SELECT w.id FROM w JOIN flow.main."V" v ON v.id = w.id'
    database = {"type": "sqlite", "path": str(tmp_path / "x.db")}
    case = {
        "input": {"type": "sql", "select_sql": query, "input_type": database}, "processors": [],
    }  # fmt: skip
    assert run(tmp_path, stream_of(case))[0] == ['{"id":2}']


def test_names_of_streams_are_not_mixed_up(tmp_path: Path) -> None:
    ids = ["a-b", "a_b", "A_b", "1", "_", "a", "a_error", "x" * 80]
    streams = [
        {**stream_of({"input": str(number), "processors": []}), "id": id_}
        for number, id_ in enumerate(ids)
    ]
    assert run(tmp_path, *streams)[0] == [str(number) for number in range(len(ids))]
    sinks = load([tmp_path / "streams.json"]).data["sinks"]
    assert len({name.lower() for name in sinks}) == 2 * len(ids)
    assert all(re.match(r"[a-zA-Z]\w{0,62}\Z", name, re.ASCII) for name in sinks)
