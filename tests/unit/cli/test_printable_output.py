"""Control characters in data are printed as escapes by every command, sink and log."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.cli.live_view import LiveView
from penstock.cli.main import main
from penstock.cli.metrics_table import format_executions
from penstock.cli.printing import print_json, print_table
from penstock.cli.shell.results import print_rows
from penstock.connectors.print import PrintSink, PrintSinkConfig
from penstock.core import log
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError, Rejected
from penstock.core.text import printable
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.runtime.dead_letters.store import Collector
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import BatchId
from penstock.sdk.columns.text_table import GrowingTable, cell, heading

ATTACK = "a\x1b]0;title\x07\x1b[2J\x9b1A\x08\x7f\r\u202eb"
ESCAPED = "a\\u001b]0;title\\u0007\\u001b[2J\\u009b1A\\u0008\\u007f\\u000d\\u202eb"
CONTROLS = "\x1b\x07\x08\x7f\r\x9b\u202e"
PIPELINE = """
name: shop
sources:
  orders: {type: memory, rows: [{id: 1}], schema: id BIGINT}
sinks:
  out: {type: memory, from: orders}
"""


def assert_printable(text: str) -> None:
    assert not set(CONTROLS) & set(text), text
    assert "\\u001b]0;title\\u0007" in text


def test_text() -> None:
    assert printable(ATTACK) == ESCAPED
    assert printable("é☂\tx\ny") == "é☂\tx\ny"


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(pa.table({ATTACK: [ATTACK], "n": [[ATTACK]]}))
    print_table((ATTACK,), [(ATTACK,)])
    table = pa.table({ATTACK: [ATTACK]})
    (field,) = table.schema
    for line in GrowingTable().lines([heading(field)], [[cell(table[0][0], field)]]):
        print(line)
    assert_printable(capsys.readouterr().out)


def test_json_remains_the_same_document(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": ATTACK})
    text = capsys.readouterr().out
    assert_printable(text)
    assert json.loads(text) == {"text": ATTACK}


def test_errors_and_logs(capsys: pytest.CaptureFixture[str]) -> None:
    error = PenstockError(f"invalid {ATTACK}", hint=ATTACK, detail=ATTACK)
    assert_printable(format_error(error))
    assert_printable(format_error(ValueError(ATTACK)))
    log.make().error(f"event {ATTACK}", error=ATTACK)
    assert_printable(capsys.readouterr().err)


def test_executions_and_live_view(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {
        "state": "failed", "error": ATTACK, "sink": ATTACK, "batch": None, "since": 0.0,
        "next_attempt": None,
    }  # fmt: skip
    (line,) = format_executions({"queries": {"q": failed}})
    assert_printable(line)
    view = LiveView(SimpleNamespace(name="shop"), [])  # type: ignore[arg-type]
    view.info(f"event {ATTACK}", error=ATTACK)
    view.error(f"event {ATTACK}")
    assert_printable(capsys.readouterr().err)


def test_dead_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop.yaml").write_text(PIPELINE)
    state = StateDirectory(tmp_path / ".penstock" / "shop")
    spool = Spool("shop", "orders", "orders", "decode", directory=str(state.spool / "orders"))
    writer = spool.begin(0, 0)
    writer.add(ATTACK.encode(), Rejected(ATTACK), ATTACK, 1)
    writer.close()
    plan: Any = SimpleNamespace(
        dead_letter=None, name="shop", nodes={"orders": SimpleNamespace(static=True, is_named=True)}
    )
    Collector(plan, state).collect("orders", 0)
    (letter,) = json.loads(run(capsys, "dead", "list", "shop.yaml", "--json"))["letters"]
    assert letter["payload"] == ATTACK
    for command in (["list", "shop.yaml"], ["show", "shop.yaml", letter["id"]]):
        assert_printable(run(capsys, "dead", *command))
    assert run(capsys, "dead", "show", "shop.yaml", letter["id"], "--payload") == ATTACK


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("terminal", [True, False])
def test_print_sink(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    """Rows of text that another program reads remain as they are."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    sink = PrintSink(PrintSinkConfig())
    receipt = {"partition": 0, "count": 1, "header": [], "lines": [ATTACK]}
    sink.commit(BatchId("q", 0, ""), [receipt])
    assert capsys.readouterr().out == (ESCAPED if terminal else ATTACK) + "\n"
