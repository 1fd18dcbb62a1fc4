"""Overlays: options of a later file replace those of an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.core.errors import PenstockError
from penstock.plan.explain import explain
from penstock.spec.documents.reading import load
from penstock.spec.yaml.writer import convert

BASE = """\
name: shop
connections:
  broker: {brokers: "localhost:9092", auth: {mechanism: PLAIN, username: u, password: p}}
sources:
  orders:
    type: files
    path: in/*.csv
    format: {type: csv, delimiter: ";", nulls: [NA]}
    schema: id INT
sinks:
  out: {type: files, from: orders, path: out, format: json}
  shown: {type: print, from: orders}
runtime: {memory: 1g, spark: {spark.sql.shuffle.partitions: 2}}
tests:
  - {name: one, given: {orders: []}}
"""
PROD = """\
connections:
  broker: {brokers: "prod:9092"}
sources:
  orders:
    path: [/data/a.csv, /data/b.csv]
    format: {delimiter: ","}
sinks:
  out: {path: /out}
  shown: {type: blackhole, from: orders}
runtime: {memory: 8g}
tests:
  - {name: two, given: {orders: []}}
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "prod.yaml").write_text(PROD)


def test_maps_are_merged_and_other_values_replaced() -> None:
    data = load(["base.yaml", "prod.yaml"]).root.data()
    assert data["sources"]["orders"] == {
        "type": "files",
        "path": ["/data/a.csv", "/data/b.csv"],
        "format": {"type": "csv", "delimiter": ",", "nulls": ["NA"]},
        "schema": "id INT",
    }
    assert data["sinks"] == {
        "out": {"type": "files", "from": "orders", "path": "/out", "format": "json"},
        "shown": {"type": "blackhole", "from": "orders"},
    }
    assert data["connections"]["broker"]["brokers"] == "prod:9092"
    assert data["connections"]["broker"]["auth"]["username"] == "u"
    assert data["runtime"]["memory"] == "8g"
    assert data["runtime"]["spark"] == {"spark.sql.shuffle.partitions": 2}
    assert [case["name"] for case in data["tests"]] == ["one", "two"]
    assert "path: /out" in convert(["base.yaml", "prod.yaml"])


def test_explain_lists_the_replaced_options() -> None:
    replaced = explain(app.plan(["base.yaml", "prod.yaml"])).replaced
    assert [(each.option, each.where, each.replaced) for each in replaced] == [
        ("connections.broker.brokers", "prod.yaml:2", "base.yaml:3"),
        ("sources.orders.path", "prod.yaml:5", "base.yaml:7"),
        ("sources.orders.format.delimiter", "prod.yaml:6", "base.yaml:8"),
        ("sinks.out.path", "prod.yaml:8", "base.yaml:11"),
        ("sinks.shown", "prod.yaml:9", "base.yaml:12"),
        ("runtime.memory", "prod.yaml:10", "base.yaml:13"),
    ]


@pytest.mark.slow
def test_the_last_of_several_overlays_applies(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("sinks: {out: {path: /site}}\n")
    document = load(["base.yaml", "prod.yaml", "site.yaml"])
    assert document.root.data()["sinks"]["out"]["path"] == "/site"


def test_an_empty_section_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("sinks:\nsources: {orders: {schema: }}\n")
    data = load(["base.yaml", "site.yaml"]).root.data()
    assert data["sinks"]["out"]["path"] == "out"
    assert data["sources"]["orders"]["schema"] is None


def test_an_overlay_replaces_options_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text(
        "CREATE TABLE a (id INT) WITH (connector = 'files', path = 'a.csv', type = 'source');\n"
        "SELECT id FROM a;\n"
    )
    (tmp_path / "site.yaml").write_text("sources: {a: {path: /data/a.csv}}\n")
    plan = app.plan(["shop.sql", "site.yaml"])
    assert plan.spec.sources["a"].model_extra["path"] == "/data/a.csv"  # type: ignore[index]


def test_an_error_of_a_replaced_option_names_the_overlay(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("sinks: {out: {mode: nope}}\n")
    with pytest.raises(PenstockError) as caught:
        app.plan(["base.yaml", "site.yaml"])
    assert caught.value.where is not None
    assert caught.value.where.file == "site.yaml"


@pytest.mark.parametrize(
    ("files", "second"),
    [
        (["base.yaml", "other.yaml"], "name: warehouse\n"),
        (["including.yaml"], "sinks: {out: {path: /elsewhere}}\n"),
        (["one.sql", "two.sql"], ""),
    ],
)
def test_two_names_and_duplicates_of_includes_and_scripts_are_errors(
    tmp_path: Path, files: list[str], second: str
) -> None:
    (tmp_path / "other.yaml").write_text(second)
    (tmp_path / "including.yaml").write_text(f"include: other.yaml\n{BASE}")
    for name in ("one.sql", "two.sql"):
        (tmp_path / name).write_text("CREATE TABLE a (id INT) WITH (connector = 'memory');\n")
    with pytest.raises(PenstockError, match="duplicate"):
        load([*files])
