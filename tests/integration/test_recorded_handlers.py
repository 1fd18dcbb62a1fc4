"""Recorded cases of stream-data-processor in one pipeline, over several batches and partitions."""

from __future__ import annotations

import json
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from recorded_handlers.cases import BATCH, CASE, RecordedCase, expected_rows, recorded_cases

TITLES = {
    "threshold": ["increase", "decrease", "decrease recover to alert", "exact equal thr"],
    "window": ["nofill 5/3"],
    "derivative": ["quad order2"],
    "aggregate": ["measurement grouped"],
    "join": ["join tol 3"],
}
COLUMNS = {
    CASE: "STRING", BATCH: "BIGINT", "time": "TIMESTAMP", "v": "DOUBLE", "tag": "STRING",
    "name": "STRING", "host": "STRING", "cpu": "STRING", "f1": "BIGINT", "f2": "DOUBLE",
}  # fmt: skip
STREAM_TYPES = {
    "STRING": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}  # fmt: skip
SCHEMA = pa.schema([(name, STREAM_TYPES[type_]) for name, type_ in COLUMNS.items()])


def comparable(rows: list[dict[str, Any]], names: set[str]) -> list[str]:
    found = []
    for row in rows:
        values = {n: row.get(n) for n in sorted(names) if n not in (CASE, BATCH)}
        values["time"] = str(values["time"]).replace(" ", "T").replace("+00:00", "Z")
        found.append(json.dumps({n: round(float(v), 6) if isinstance(v, int | float) else v
                                 for n, v in values.items()}))  # fmt: skip
    return sorted(found)


def test_cases_in_one_pipeline(cli: Any, tmp_path: Path) -> None:
    known = {case.title: case for case in recorded_cases()}
    cases = {name: [known[title] for title in titles] for name, titles in TITLES.items()}
    pipeline: dict[str, Any] = {
        "name": "cases",
        "sources": {"rows": {
            "type": "files", "path": "in/*.json", "order": "name", "max_files": 3,
            "schema": ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items()),
        }},
        "transforms": {}, "sinks": {},
    }  # fmt: skip
    for name, of_name in cases.items():
        titles = ", ".join(f"'{case.title}'" for case in of_name)
        chosen = {"type": "filter", "from": "rows", "where": f"{CASE} IN ({titles})"}
        pipeline["transforms"][f"{name}_rows"] = chosen
        options = {"type": "handlers", "from": f"{name}_rows", **of_name[0].options}
        pipeline["transforms"][name] = {n: v for n, v in options.items() if v is not None}
        sink = {"type": "files", "from": name, "path": f"out/{name}", "format": "json"}
        pipeline["sinks"][f"{name}_file"] = sink
    (tmp_path / "cases.yaml").write_text(json.dumps(pipeline))
    write_rows(tmp_path, [case for of_name in cases.values() for case in of_name])
    result = cli(tmp_path, "run", "cases.yaml")
    assert result.returncode == 0, result.stderr
    for name, of_name in cases.items():
        files = (tmp_path / "out" / name).glob("*.json*")
        rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        for case in of_name:
            expected = expected_rows(case)
            names = {column for row in expected for column in row}
            found = [row for row in rows if row[CASE] == case.title]
            assert comparable(found, names) == comparable(expected, names), case.title


def write_rows(directory: Path, cases: list[RecordedCase]) -> None:
    """Writes the rows of all cases in one random order to files."""
    rng, queues = random.Random(5), [case.rows(SCHEMA).to_pylist() for case in cases]
    owners = [number for number, queue in enumerate(queues) for _ in queue]
    rng.shuffle(owners)
    rows = [queues[owner].pop(0) for owner in owners]
    (directory / "in").mkdir()
    size = -(-len(rows) // 6)
    for number in range(6):
        part = rows[number * size : (number + 1) * size]
        text = "".join(f"{json.dumps(row, default=datetime.isoformat)}\n" for row in part)
        (directory / "in" / f"{number}.json").write_text(text)
