"""A sink with the name of the transform that it reads: runs, dead letters, state and tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine

pytestmark = pytest.mark.spark

FAILING = "SELECT id, CAST(unhex(name) AS STRING) AS name, 10 / n AS share FROM rows"
CORRECT = "SELECT id, name, coalesce(try_divide(10, n), 0) AS share FROM rows"
DOCUMENT: dict[str, Any] = {
    "name": "shop",
    "sources": {
        "rows": {"type": "files", "path": "in/*.jsonl", "schema": "id INT, n INT, name STRING"}
    },
    "transforms": {"orders": {"type": "sql", "sql": FAILING}},
    "sinks": {
        "rows": {"type": "files", "from": "rows", "path": "rows"},
        "orders": {"type": "files", "from": "orders", "path": "orders"},
    },
    "tests": [
        {
            "name": "nodes",
            "given": {"rows": [{"id": 1, "n": 5, "name": "61"}, {"id": 2, "n": 0, "name": "62"}]},
            "expect": {"orders": [{"id": 1}], "sinks.orders": [{"share": 2.0}]},
            "dead_letters": [{"node": "orders", "code": "divide-by-zero"}],
        }
    ],
}


def written(directory: Path, sink: str) -> list[int]:
    texts = [path.read_text() for path in (directory / sink).glob("*.jsonl")]
    return sorted(json.loads(line)["id"] for text in texts for line in text.splitlines())


def test_sink_with_the_name_of_a_transform(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [
        {"id": 1, "n": 5, "name": "61"}, {"id": 2, "n": 0, "name": "61"},
        {"id": 3, "n": 5, "name": "ff"},
    ]  # fmt: skip
    (tmp_path / "in" / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(DOCUMENT))
    assert cli(tmp_path, "run", "shop.yaml").returncode == 0
    assert (written(tmp_path, "rows"), written(tmp_path, "orders")) == ([1, 2, 3], [1])
    counted = json.loads(cli(tmp_path, "dead", "list", "shop.yaml", "--json").stdout)["counts"]
    assert sorted((each["node"], each["count"]) for each in counted) == [
        ("orders", 1), ("sinks.orders", 1),
    ]  # fmt: skip

    (tmp_path / "in" / "b.jsonl").write_text('{"id": 4, "n": 5, "name": "61"}\n')
    assert cli(tmp_path, "run", "shop.yaml").returncode == 0
    assert (written(tmp_path, "rows"), written(tmp_path, "orders")) == ([1, 2, 3, 4], [1, 4])

    file.write_text(json.dumps(DOCUMENT).replace(FAILING, CORRECT))
    replay = ("dead", "replay", "shop.yaml", "--set", "sinks.orders.invalid_utf8=replace", "--node")
    for node, ids in (("sinks.orders", [1, 3, 4]), ("orders", [1, 2, 3, 4])):
        result = cli(tmp_path, *replay, node)
        assert "1 dead letter replayed" in result.stdout, result
        assert written(tmp_path, "orders") == ids
    assert "0 dead letters" in cli(tmp_path, "dead", "list", "shop.yaml").stdout


def test_commands_name_the_sink(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "shop.yaml").write_text(json.dumps(DOCUMENT))
    result = cli(tmp_path, "test", "shop.yaml")
    assert result.returncode == 0, result
    result = cli(tmp_path, "run", "shop.yaml", "--backfill", "orders")
    assert result.returncode == 2 and "sinks.orders" in result.stderr, result
    result = cli(tmp_path, "explain", "shop.yaml", "--set", "sinks.orders.path=elsewhere", "--json")
    names = {each["name"]: each["kind"] for each in json.loads(result.stdout)["nodes"]}
    assert names == {
        "rows": "source", "orders": "transform", "sinks.rows": "sink", "sinks.orders": "sink",
    }  # fmt: skip
    result = cli(tmp_path, "convert", "shop.yaml")
    assert result.returncode == 2 and 'duplicate name "orders"' in result.stderr, result
