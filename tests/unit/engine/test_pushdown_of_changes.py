"""Conditions that a source of changes may apply while it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.engine.sources.pushdown import without_lost_changes
from penstock.plan.pushdown import Pushdown
from penstock.sdk import Conjunct


@pytest.mark.parametrize(
    ("before", "condition", "is_pushed"),
    [
        ("complete", "", True),
        ("partial", "", False),
        ("complete", ", on_conflict: nothing", False),
        ("complete", ", update_where: {n: '>'}", False),
    ],
)
def test_conditions_on_changes(
    tmp_path: Path, before: str, condition: str, is_pushed: bool
) -> None:
    """Above a sink that compares rows, no row of an update is left out."""
    (tmp_path / "rows.yaml").write_text(
        "name: rows\nsources:\n  rows: {type: files, path: in, schema: 'id INT, n INT', "
        f"primary_key: id, format: {{type: debezium_json, before: {before}}}}}\n"
        "transforms:\n  large: {type: filter, from: rows, where: n > 5}\n"
        "sinks:\n  out: {type: sqlite, from: large, path: db, table: t, mode: upsert"
        f"{condition}}}\n"
    )
    plan = app.plan(tmp_path / "rows.yaml")
    (query,) = plan.queries
    asked = Pushdown(conjuncts=(Conjunct("n", ">", 5),))
    found = without_lost_changes(plan.nodes["rows"], query, asked, has_clock=False)
    assert (found == asked) == is_pushed
