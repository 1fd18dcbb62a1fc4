"""`penstock discover`, with the databases that need no server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_tables import catalog_options
from lake_tables import write
from penstock import app
from penstock.cli.main import main
from penstock.connectors.iceberg import IcebergSink
from penstock.core.errors import PlanError
from penstock.discovery import topic_names

TABLES = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, price DECIMAL(10, 2), at TIMESTAMP);
CREATE TABLE "Order Lines" ("order" INT, line INT, note JSON, PRIMARY KEY ("order", line));
CREATE TABLE "a.b" (x TEXT);
CREATE TABLE "A B" (x TEXT);
CREATE TABLE penstock_batches (node TEXT);
CREATE VIEW cheap AS SELECT * FROM orders WHERE price < 10;
"""
Discover = Callable[..., tuple[int, str, str]]


@pytest.fixture
def discover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Discover:
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("shop.db") as db:
        db.executescript(TABLES)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["discover", *words])
        return code, *capsys.readouterr()

    return run


def test_tables_with_columns_and_keys(discover: Discover) -> None:
    code, out, _ = discover("sqlite", "--path", "shop.db")
    assert code == 0 and "penstock_batches" not in out
    lines = [line.split("  ") for line in out.splitlines()]
    rows = {first: [cell.strip() for cell in rest if cell] for first, *rest in lines}
    assert rows["orders"] == ["id BIGINT, price DECIMAL(10, 2), at TIMESTAMP", "id"]
    assert rows["cheap"] == ["id BIGINT, price DECIMAL(10, 2), at TIMESTAMP"]
    assert rows["Order Lines"][-1] == "order, line" and rows['"a.b"'] == ["x STRING"]
    found = json.loads(discover("sqlite", "cheap", "--path", "shop.db", "--json")[1])
    (table,) = found
    assert table["table"] == "cheap" and table["primary_key"] == [] and table["changes"] is None
    assert table["columns"][0] == {"name": "id", "type": "BIGINT", "nullable": True}
    Path("empty.db").touch()
    assert discover("sqlite", "--path", "empty.db")[1] == "no tables\n"


def test_pipeline_of_the_named_tables(discover: Discover, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of nodes differ also where the names of tables are alike. Variables stay."""
    monkeypatch.setenv("SHOP", "shop.db")
    words = ("--path", "${SHOP}", "--set", "watch=true", "orders", '"a.b"', "A B", "Order Lines")
    code, out, _ = discover("sqlite", *words)
    assert code == 0 and "path: ${SHOP}" in out and str(Path.cwd()) not in out
    Path("shop.yaml").write_text(out)
    plan = app.plan("shop.yaml")
    tables = {node.name: node.source.config.table for node in plan.of("source")}
    assert tables == {
        "orders": "orders", "a_b": '"a.b"', "a_b_2": "A B", "order_lines": "Order Lines"
    }  # fmt: skip
    assert all(node.source.config.watch for node in plan.of("source"))
    assert len([*plan.of("sink")]) == 4


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "error[usage]: expected the type of a source"),
        (("sqlit",), 'did you mean "sqlite"?'),
        (
            ("generate",),
            "Discover one of clickhouse, duckdb, iceberg, jdbc, mysql, postgres, sqlite.",
        ),
        (("sqlite",), 'source "sqlite" (type: sqlite) needs "path"'),
        (("sqlite", "--path", "shop.db", "order"), 'did you mean "orders"?'),
        (("sqlite", "--path", "shop.db", "a..b"), "error[usage]: a..b: expected the name"),
        (("sqlite", "--path", "none.db"), "cannot open the database"),
        (("sqlite", "--path", "${UNSET_PATH}"), '"UNSET_PATH" is not set'),
        (("sqlite", "--path", "shop.db", "--set", "tabl=x"), 'did you mean "table"?'),
        (
            ("sqlite", "--path", "shop.db", "--set", "lookup=true"),
            "the option lookup has no meaning",
        ),
        (("postgres", "--set", "changes=true"), "the option changes has no meaning"),
        (("sqlite", "--set", "path"), "--set path: expected KEY=VALUE"),
        (("sqlite", "--set", "a=1", "--set", "a.b=2"), '--set a.b: "a" has a value already'),
    ],
)
def test_errors(discover: Discover, words: tuple[str, ...], expected: str) -> None:
    code, out, err = discover(*words)
    assert code in (2, 3) and out == "" and expected in err and "-->" not in err


@pytest.mark.slow
def test_tables_of_iceberg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {**catalog_options(tmp_path), "table": "shop.eu.orders"}
    catalog = options["catalog"]
    words = ["discover", "iceberg", "--set", f"catalog={json.dumps(catalog)}"]
    assert main(words) == 0 and capsys.readouterr().out == "no tables\n"
    sink = IcebergSink.create(IcebergSink.config_type.model_validate(options))
    assert isinstance(sink, IcebergSink)
    sink.mode, sink.primary_key = "upsert", ("id",)
    write(sink, pa.record_batch({"id": [1], "at": ["x"]}))
    assert main([*words, "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    assert (table["table"], table["primary_key"], table["changes"]) == (
        "shop.eu.orders", ["id"], True,
    )  # fmt: skip
    assert main([*words, "shop.eu.orders"]) == 0
    assert "table: shop.eu.orders\n    changes: true" in capsys.readouterr().out
    assert main([*words, "shop.eu.order"]) == 2
    assert 'did you mean "shop.eu.orders"?' in capsys.readouterr().err


def test_options_without_names(discover: Discover) -> None:
    with pytest.raises(PlanError) as raised:
        topic_names("sqlite", {"path": "x.db"})
    assert (raised.value.code, raised.value.hint) == (
        "no-topics", "Discover one of kafka, nats, pulsar, redis.",
    )  # fmt: skip
    with pytest.raises(PlanError) as raised:
        topic_names("nats", {"url": "nats://localhost"}, "table")
    assert raised.value.hint == "Discover stream or subject or bucket."
    code, _, error = discover("nats", "orders", "--url", "nats://localhost")
    assert code == 2 and "Remove orders." in error
