"""Odd values of options: an error with a place, not a defect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.core.errors import PenstockError
from penstock.sdk.columns.ddl import arrow_schema

Path_ = tuple[str, ...]
HUGE = 10**20
NAME = "x" * 300


def document(path: Path_, value: Any) -> dict[str, Any]:
    source: dict[str, Any] = {"type": "memory", "rows": [{"v": 1}]}
    made: dict[str, Any] = {
        "sources": {"a": source},
        "sinks": {"out": {"type": "blackhole", "from": "a"}},
    }
    parent = made
    for key in path[:-1]:
        parent = parent.setdefault(key, {})
    parent[path[-1]] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        (("sources", "a", "schema"), "v DECIMAL(99,9)", "invalid-schema"),
        (("sources", "a", "schema"), "v DECIMAL(0)", "invalid-schema"),
        (("sources", "a", "schema"), "v DECIMAL(5,9)", "invalid-schema"),
        (("sources", "a", "schema"), "v DECIMAL(x)", "invalid-schema"),
        (("sources", "a", "schema"), f"v DECIMAL({'9' * 5000})", "invalid-schema"),
        (("sources", "a", "schema"), f"v {'ARRAY<' * 5000}INT", "invalid-schema"),
        (("sources", "a", "rows"), [{"v": HUGE}], "integer-too-large"),
        (("sources", "a", "rows"), [{"v": 1}, {"v": -HUGE}], "integer-too-large"),
        (("sinks", "out", "from"), [], "missing-option"),
        (("include",), NAME, "unreadable-file"),
        (("include",), [HUGE * HUGE**15], "wrong-type"),
        (
            ("sources", "a", "format"),
            {"type": "avro", "schema_file": "a\0b"},
            "unreadable-file",
        ),
    ],
)
def test_an_odd_value_is_an_error_with_a_place(
    tmp_path: Path, path: Path_, value: Any, code: str
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(json.dumps(document(path, value)))
    with pytest.raises(PenstockError) as raised:
        app.plan(file)
    error = raised.value
    errors = getattr(error, "errors", (error,))
    assert code in [inner.code for inner in errors]
    assert all(inner.where for inner in errors) and "bug" not in [inner.code for inner in errors]


def test_the_largest_decimal_is_valid() -> None:
    assert str(arrow_schema("v DECIMAL(38,38)").field("v").type) == "decimal128(38, 38)"
