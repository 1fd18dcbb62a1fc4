"""The verbs that look at a pipeline with Spark's help, and what they leave behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from command_line import CommandLine
from penstock import app

pytestmark = pytest.mark.spark

PIPELINE = """
name: shop
sources:
  orders:
    type: files
    path: in/*.csv
    schema: id BIGINT, amount DOUBLE
transforms:
  shares: {type: sql, sql: "SELECT id, 10 / amount AS share FROM orders"}
sinks:
  out: {type: files, from: shares, path: out}
"""
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(shop: Path, cli: CommandLine) -> Said:
    def run(*words: str) -> tuple[int, str, str]:
        done = cli(shop, *words)
        assert "Traceback" not in done.stdout + done.stderr and "error[bug]" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_bytes(b"id,amount\n1,2.5\nx,3\n5,0\n4,1\n\xff,1\n")
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    return tmp_path


def files(directory: Path) -> list[str]:
    return sorted(os.fspath(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())


def test_check_and_inspect_leave_nothing(said: Said, shop: Path) -> None:
    before = files(shop)
    code, out, _ = said("check", "shop.yaml", "--level", "sample", "--json")
    found = json.loads(out)
    assert code == 0 and found["ok"], found
    assert found["nodes"]["shares"]["columns"][1] == {"name": "share", "type": "DOUBLE"}
    assert found["nodes"]["out"]["rows"] == 2
    assert {each["code"] for each in found["warnings"]} >= {"wrong-type", "divide-by-zero"}

    code, out, _ = said("inspect", "shop.yaml", "shares", "--json")
    seen = json.loads(out)
    assert code == 0
    assert sorted(row["share"] for row in seen["rows"]) == [4.0, 10.0]
    assert seen["dead_letters"] == 3 and not seen["errors"]

    code, out, _ = said("inspect", "shop.yaml", "orders", "--rows", "1")
    assert code == 0 and out.splitlines()[0].split() == ["id", "amount"]
    assert len(out.splitlines()) == 2
    assert files(shop) == before


def test_check_reports_errors_of_types_and_systems_together(said: Said, shop: Path) -> None:
    (shop / "shop.yaml").write_text(
        PIPELINE.replace("amount AS", "amuont AS").replace("in/", "nowhere/")
    )
    code, out, err = said("check", "shop.yaml", "--level", "connect")
    assert (code, out) == (3, "")
    assert 'there is no column "amuont"' in err and "cannot find files" in err
    assert err.rstrip().endswith("2 errors")


def test_explain_has_the_columns_of_every_edge(said: Said, shop: Path) -> None:
    found = json.loads(said("explain", "shop.yaml", "--json")[1])
    nodes = {node["name"]: node for node in found["nodes"]}
    assert [column["name"] for column in nodes["out"]["columns"]] == ["id", "share"]
    assert nodes["out"]["guarantee"]["level"] == "exactly once"


def test_dead_letters_are_listed_shown_replayed_and_removed(said: Said, shop: Path) -> None:
    assert said("run", "shop.yaml", "--quiet")[0] == 0
    found = json.loads(said("dead", "list", "shop.yaml", "--json")[1])
    assert found["total"] == 3
    assert sum(each["count"] for each in found["counts"] if each["node"] == "orders") == 2
    assert "divide-by-zero" in said("dead", "list", "shop.yaml")[1]
    ids = {each["message"].partition(":")[0]: each["id"] for each in found["letters"]}
    assert len(ids) == 3

    zero = next(each for each in found["letters"] if each["node"] == "shares")
    assert json.loads(zero["payload"]) == {"id": 5, "amount": 0.0}
    assert said("dead", "show", "shop.yaml", zero["id"][:8], "--payload")[1] == zero["payload"]
    bad = next(each for each in found["letters"] if each["payload"] is None)
    assert bad["payload_hex"].startswith("ff")
    assert "payload in hex (3 B)\nff 2c 31" in said("dead", "show", "shop.yaml", bad["id"])[1]
    code, _, err = said("dead", "show", "shop.yaml", "")
    assert code == 2 and "expected the file of the pipeline and an id" in err

    code, out, _ = said("dead", "replay", "shop.yaml", "--node", "shares", "--dry-run")
    assert code == 0 and out.startswith("shop: 1 dead letter would be replayed")
    mended = PIPELINE.replace("10 / amount", "10 / greatest(amount, 1)")
    (shop / "shop.yaml").write_text(mended)
    code, out, _ = said("dead", "replay", "shop.yaml", "--node", "shares")
    assert (code, out) == (0, "1 dead letter replayed\n")
    rows = [json.loads(line) for p in (shop / "out").glob("*.jsonl") for line in p.open()]
    assert sorted(row["id"] for row in rows) == [1, 4, 5]

    code, _, err = said("dead", "remove", "shop.yaml")
    assert code == 2 and "--yes" in err
    assert said("dead", "remove", "shop.yaml", "--yes")[1] == "shop: removed 2 dead letters\n"
    assert said("dead", "list", "shop.yaml")[1] == "shop: 0 dead letters\n"


TICKS = """
name: ticks
sources:
  ticks: {type: impulse, rate: 20}
transforms:
  counts: {type: sql, sql: "SELECT counter % 2 AS k, count(*) AS n FROM ticks GROUP BY 1"}
sinks:
  out: {type: print, from: counts}
"""


def test_rows_of_an_endless_query_arrive_before_its_end(
    penstock_spark: SparkSession, shop: Path
) -> None:
    (shop / "ticks.yaml").write_text(TICKS)
    plan = app.plan(shop / "ticks.yaml")
    arrived: list[int] = []

    def stop_at_second_part(node: str, rows: pa.Table) -> None:
        assert node == "counts" and rows.column_names == ["k", "n", "_op"]
        arrived.append(rows.num_rows)
        if len(arrived) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        app.preview(
            plan, ["counts"], rows=1_000_000, timeout=600, spark=penstock_spark,
            on_rows=stop_at_second_part,
        )  # fmt: skip
    assert min(arrived) > 0


def test_inspect_of_an_endless_query_prints_each_row_once(said: Said, shop: Path) -> None:
    (shop / "ticks.yaml").write_text(TICKS)
    code, out, err = said("inspect", "ticks.yaml", "ticks", "--rows", "30")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0, err
    assert lines[0] == ["counter", "subtask_index"]
    assert sorted(int(line[0]) for line in lines[1:]) == list(range(30))
    code, out, _ = said("inspect", "ticks.yaml", "counts", "--rows", "5")
    rows = [line.split() for line in out.splitlines() if not line.startswith("k")]
    assert code == 0 and len(rows) == 5
    first = dict(reversed([(row[0], row[2]) for row in rows]))
    assert set(first.values()) == {"i"}
