"""Sums of wide decimals and of intervals that overflow: dead letters of their groups."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext

import pytest
from pipelines import Row, Workspace, dump
from test_updating_failures import pipeline as updating_pipeline
from test_updating_failures import table, tables

pytestmark = pytest.mark.spark

MOST = Decimal("9" * 36 + ".99")
LEAST = MOST.copy_negate()
DECIMALS = {
    "above": [MOST, MOST, Decimal("0.01")],
    "below": [LEAST, Decimal("-0.01"), None],
    "order": [MOST, Decimal("0.01"), Decimal("-7.25")],
    "minus": [LEAST, Decimal("-0.02"), Decimal("123456789012345678901.02")],
    "small": [Decimal("-1.25"), Decimal("0.50"), None],
    "null": [None, None, None],
}
DAYS, MONTHS, LONG = 106_751_991, 2**31 - 1, 2**63 - 1
COUNTS = {
    "above": [1, 1, 1],
    "below": [-1, -1, 0],
    "order": [1, 1, -1],
    "minus": [-1, -1, 1],
    "small": [0, 0, None],
    "null": [None, None, None],
}
"""The values of days and months: multiples of the most."""
SOURCE = """\
runtime: {partitions: 1}
sources:
  s:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    schema: k STRING, d STRING, days INT, months INT, x LONG
"""
DECIMAL = "CAST(d AS DECIMAL(38, 2))"
QUERIES = {
    "decimals": f"SELECT k, CAST(sum({DECIMAL}) AS STRING) AS total FROM s GROUP BY k",
    "positive": f"SELECT k, CAST(sum({DECIMAL}) FILTER (WHERE d NOT LIKE '-%') AS STRING) AS total "
    "FROM s GROUP BY k",
    "averages": "SELECT k, CAST(avg(CAST(d AS DECIMAL(38, 2))) AS STRING) AS total FROM s "
    "GROUP BY k",
    "days": "SELECT k, CAST(extract(DAY FROM sum(make_dt_interval(days))) AS STRING) AS total "
    "FROM s GROUP BY k",
    "day_averages": "SELECT k, CAST(extract(DAY FROM avg(make_dt_interval(days))) AS STRING) AS "
    "total FROM s GROUP BY k",
    "months": "SELECT k, CAST(CAST(sum(make_ym_interval(0, months)) AS INTERVAL MONTH) AS STRING) "
    "AS total FROM s GROUP BY k",
    "over": "SELECT k, CAST(sum(x) OVER (PARTITION BY k) AS STRING) AS total FROM s",
}
FAILING = {
    "decimals": {"above", "below"},
    "positive": {"above", "order"},
    "averages": {"above", "below", "order", "minus"},
    "days": {"above", "below"},
    "day_averages": {"above", "below"},
    "months": {"above", "below"},
    "over": {"above", "below"},
}
Totals = dict[str, str | None]


def put(workspace: Workspace, number: int) -> None:
    rows: list[Row] = []
    for k, values in DECIMALS.items():
        value, count = values[number], COUNTS[k][number]
        rows.append(
            {
                "k": k,
                "d": None if value is None else str(value),
                "days": None if count is None else count * DAYS,
                "months": None if count is None else count * MONTHS,
                "x": None if count is None else count * LONG,
            }
        )
    workspace.put(f"in/{number}.jsonl", map(dump, rows))


def totals(last: int) -> Totals:
    """Returns the sums of decimals after a batch, of the groups whose sum does not overflow."""
    found: Totals = {}
    with localcontext(prec=60):
        for k, values in DECIMALS.items():
            known = [value for value in values[: last + 1] if value is not None]
            if abs(sum(known)) <= MOST:
                found[k] = str(sum(known)) if known else None
    return found


def letters(workspace: Workspace, name: str) -> list[str]:
    found = [each for each in workspace.dead_letters() if each["node"] == name]
    assert all(each["stage"] == "output" for each in found)
    return sorted(json.loads(each["payload"])["k"] for each in found)


def test_whole_input(workspace: Workspace) -> None:
    for number in range(3):
        put(workspace, number)
    workspace.run(updating_pipeline(QUERIES, SOURCE))
    for name, failing in FAILING.items():
        count = 3 if name == "over" else 1
        assert letters(workspace, name) == sorted([*failing] * count), name
        rows: Totals = {str(k): total for k, total in table(workspace, name)}  # type: ignore[misc]
        assert rows.keys() == DECIMALS.keys() - failing, name
        if name == "decimals":
            assert rows == totals(2)
        elif name.startswith("day") or name == "months":
            unit = {"days": DAYS, "day_averages": DAYS // 3}.get(name, MONTHS)
            assert rows["null"] is None and str(unit) in str(rows["order"]), rows
    codes = {each["code"] for each in workspace.dead_letters() if each["node"] != "averages"}
    assert codes == {"arithmetic-overflow"}
    (message,) = [
        each["message"] for each in workspace.dead_letters() if each["node"] == "decimals"
        and json.loads(each["payload"])["k"] == "above"
    ]  # fmt: skip
    assert message == f"the sum 1{'9' * 36}.99 overflows DECIMAL(38,2)"


def test_updating(workspace: Workspace) -> None:
    queries = {name: QUERIES[name] for name in ("decimals", "days", "over")}
    text = updating_pipeline(queries, SOURCE + "    watch: true\n")
    for number in range(3):
        put(workspace, number)
    workspace.run(text, until="caught_up")
    for number, rows in enumerate(tables(workspace, "decimals", 3)):
        assert {str(k): total for k, total in rows} == totals(number)
    assert letters(workspace, "decimals") == ["above", "above", "below", "minus", "order"]
    for name in ("days", "over"):
        assert {str(k) for k, _ in table(workspace, name)} == DECIMALS.keys() - FAILING[name]
