"""Pipelines as users of Streamling write them: each has a plan without errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.spec.yaml.writer import convert

README = Path(__file__).parents[2] / "integration" / "streamling_readme"
FUNCTIONS = """\
sources:
  events: {type: kafka, topic: app.events, primary_key: id}
transforms:
  wide: {type: sql, primary_key: id, sql: "SELECT id, to_u256(a) AS a, tags FROM events"}
  made:
    type: sql
    primary_key: id
    sql: |
      SELECT id, a * 2 AS twice, json_value(tags, '$.a') AS tag, _gs_keccak256(id) AS hash
      FROM wide
      WHERE a > to_u256(5) AND split_index(tags, ',', 0) <> 'x'
sinks:
  out: {type: print, from: made, sample_every: "10"}
"""
PIPELINES = {file.stem: file.read_text() for file in sorted(README.glob("*.yaml"))}


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", [*PIPELINES, "functions"])
def test_pipeline(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMLING__PLUGIN__PATH", str(README / "acme.py"))
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINES.get(name, FUNCTIONS))
    plan = app.plan([file])
    converted = tmp_path / "converted.yaml"
    converted.write_text(convert([str(file)]))
    again = app.plan([converted])
    assert {*again.nodes} == {*plan.nodes}


def test_declared_integers_of_many_digits_have_operators(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(
        """\
sources:
  events: {type: kafka, topic: t, data_format: json, schema: {id: int64, wei: "decimal(78)",
           tip: "decimal256(76, 0)", price: "decimal(50, 2)"}}
transforms:
  same: {type: sql, primary_key: id, sql: "SELECT id, wei AS paid, tip, price FROM events"}
  made: {type: sql, primary_key: id, sql: "SELECT id, paid + tip * 2 AS total FROM same
         WHERE paid > 10"}
sinks:
  out: {type: print, from: made}
"""
    )
    text = convert([str(tmp_path / "pipeline.yaml")])
    assert "i256_add(paid, i256_mul(tip, 2)) AS total" in text
    assert "i256_compare(paid, 10) > 0" in text
