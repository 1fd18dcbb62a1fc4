"""`penstock sql`: statements of standard input, and a shell on a terminal."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from terminal import PENSTOCK, Terminal

from command_line import CommandLine

pytestmark = pytest.mark.spark

ORDERS = """
CREATE TABLE orders (id BIGINT, amount DOUBLE)
WITH (connector = 'files', path = 'in/*.csv', format = 'csv');
"""
OUT = "CREATE TABLE out (id INT) WITH (connector = 'files', path = 'out', format = 'json');"
Said = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def said(tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Said:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("id,amount\n1,2.5\nx,3\n5,0\n4,1\n")

    def run(text: str, *files: str) -> tuple[int, list[str], str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        done = cli(tmp_path, "sql", *files)
        assert "error[bug]" not in done.stderr
        return done.returncode, done.stdout.splitlines(), done.stderr

    return run


def test_statements_of_standard_input(said: Said, tmp_path: Path) -> None:
    code, out, err = said(
        "SELECT 6 * 7 AS answer;"
        f"{ORDERS} CREATE VIEW half AS SELECT id, amount / 2 AS half FROM orders; {OUT}"
        "SELECT id, half FROM half WHERE id > 1; INSERT INTO out SELECT id FROM half;"
        "SELECT id, 1 / amount AS r FROM orders WHERE id = 5;"
    )
    assert code == 0, err
    printed = [line.split() for line in out if not line.startswith("(")]
    assert printed[:6] == [
        ["answer"], ["42"], ["table", "orders", "(2", "columns)"], ["view", "half"],
        ["table", "out", "(1", "column)"], ["id", "half"],
    ]  # fmt: skip
    assert sorted(printed[6:]) == [["4", "0.5"], ["5", "0.0"]]
    assert [line.split(" in ")[0] for line in out if line.startswith("(")] == [
        "(2 rows", "(3 rows", "(0 rows",
    ]  # fmt: skip
    assert err.count('orders: column "id": "x" is not a BIGINT') == 3
    assert "2 records failed:" in err and "Division by zero" in err
    [part] = (tmp_path / "out").glob("part-*")
    assert part.read_text().count("\n") == 3
    assert not (tmp_path / ".penstock").exists()


def test_the_first_error_ends_the_input(said: Said, tmp_path: Path) -> None:
    code, out, err = said(f"{ORDERS}{OUT}SELECT idd FROM orders; INSERT INTO out SELECT 1;")
    assert code == 2 and len(out) == 2
    assert "<sql>:1:8" in err and 'did you mean "id"?' in err
    assert not (tmp_path / "out").exists()
    code, out, err = said("SELECT current_dat();")
    assert code == 2 and not out and "current_dat" in err and "JVM" not in err


def test_the_definitions_of_a_file(said: Said, tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text(f"{ORDERS}{OUT}INSERT INTO out SELECT id FROM orders;")
    code, out, err = said("\\d out", "shop.sql")
    assert code == 0 and "shop.sql: 1 query not run" in err
    assert [line.split() for line in out] == [["column", "type"], ["id", "INT"]]
    code, out, err = said("\\explain SELECT id FROM orders", "shop.sql")
    assert code == 0 and "orders  files" in "\n".join(out), err
    code, _, err = said("", "nothing.sql")
    assert code == 2 and "nothing.sql" in err


def test_ctrl_c_ends_the_query_and_not_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    terminal = Terminal([*PENSTOCK, "sql"], tmp_path)

    def enter(text: str, shown: str) -> None:
        os.write(terminal.screen, text.encode())
        terminal.until(shown)

    try:
        terminal.until("penstock>")
        enter("CREATE TABLE ticks WITH (connector = 'impulse',\rrate = 20);\r", "table ticks")
        enter("SELECT counter + 1000 AS number FROM ticks;\r", r"\n *1003\n")
        terminal.process.send_signal(signal.SIGINT)
        terminal.until(r"\(\d+ rows in .*\)")
        enter("SELECT 6 * 7 AS answer;\r", r"answer\s*\n\s+42\s+penstock>")
        os.write(terminal.screen, b"\x04")
        assert terminal.end() == 0, terminal.text
        assert "Traceback" not in terminal.text
        assert "SELECT 6 * 7" in (tmp_path / "penstock/sql_history").read_text()
    finally:
        terminal.close()
