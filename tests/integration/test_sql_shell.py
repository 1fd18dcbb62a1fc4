"""`penstock sql`: statements of standard input, and a shell on a terminal."""

from __future__ import annotations

import io
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from command_line import CommandLine
from penstock.cli.shell.warm_up import warm_up
from penstock.core.errors import PenstockError
from penstock.runtime.state.directory import StateDirectory
from terminal import PENSTOCK, TIMEOUT_SECONDS, Terminal

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


def test_input_continues_after_an_error(said: Said, tmp_path: Path) -> None:
    code, out, err = said(
        f"{ORDERS}{OUT}SELECT idd FROM orders;\n"
        "CREATE VIEW bad AS\n  SELECT id, nope FROM orders; INSERT INTO out SELECT id FROM bad;\n"
        "CREATE TABLE missing WITH (connector = 'files', path = 'x/*', format = 'json');\n"
        "SELECT x FROM missing; SELECT 1 + oops; DESCRIBE orders; SELECT 'last' AS statement"
    )
    assert code == 2
    assert f"<sql>:4:{len(OUT) + 8}" in err and 'did you mean "id"?' in err
    assert "<sql>:6:14" in err and 'there is no column "nope"' in err
    assert 'the statement uses "bad", whose definition has an error' in err
    assert "<sql>:7:14" in err and "cannot find files" in err
    assert "<sql>:8:35" in err and 'there is no column "oops"' in err
    assert err.count("error[") == 5
    assert not (tmp_path / "out").exists()
    assert [line.split() for line in out[3:]] == [
        ["column", "type"], ["id", "BIGINT"], ["amount", "DOUBLE"], ["statement"], ["last"],
    ]  # fmt: skip
    code, out, err = said("SELECT current_dat();\n\\q\nSELECT 1;")
    assert code == 2 and not out and "current_dat" in err and "JVM" not in err


def test_queries_without_tables(said: Said) -> None:
    code, out, err = said(
        "CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$\n"
        "def twice(x: int) -> int:\n    return 2 * x; $$;"
        "CREATE TABLE rows (id INT) WITH (connector = 'impulse');"
        "SELECT upper('a') AS x, twice(4) AS y; VALUES (1), (2); DESCRIBE SELECT 1 AS z;"
        "SELECT 1 AS a UNION ALL SELECT 2;\nEXPLAIN SELECT nope FROM rows;SELECT '$${x}' AS d\n"
    )
    assert code == 2 and "<sql>:4:16" in err and err.count("error[") == 1
    assert [line.split() for line in out[2:]] == [
        ["x", "y"], ["A", "8"], ["col1"], ["1"], ["2"], ["column", "type"], ["z", "INT"],
        ["a"], ["1"], ["2"], ["d"], ["${x}"],
    ]  # fmt: skip


def test_a_limit_ends_a_query_of_an_endless_source(said: Said, tmp_path: Path) -> None:
    code, out, err = said(
        "CREATE TABLE ticks WITH (connector = 'impulse', rate = 20);"
        "SELECT counter FROM ticks WHERE counter > 4 LIMIT 3;"
        "CREATE TABLE copy WITH (connector = 'files', path = 'copy', format = 'json')"
        " AS SELECT id FROM orders; SHOW TABLES;"
        "CREATE TABLE few (n BIGINT); INSERT INTO few SELECT counter FROM ticks WHERE counter < 2;"
        "INSERT INTO few SELECT counter FROM ticks WHERE nope; SELECT n + 40 AS n FROM few LIMIT 2"
    )
    assert 'there is no column "nope"' in err and err.count("error[") == 2
    assert code == 2 and 'there is no table or view "orders"' in err
    rows = sorted(line.strip() for line in out if line.strip().isdigit())
    assert rows == ["40", "41", "5", "6", "7"]
    assert "table  ticks" in out and "insert into few" in out


def test_the_definitions_of_a_file(said: Said, tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text(f"{ORDERS}{OUT}INSERT INTO out SELECT id FROM orders;")
    code, out, err = said("\\d out", "shop.sql")
    assert code == 0 and "shop.sql: 1 query not run" in err
    assert [line.split() for line in out] == [["column", "type"], ["id", "INT"]]
    code, out, err = said("\\explain SELECT id FROM orders", "shop.sql")
    assert code == 0 and "orders  files" in "\n".join(out), err
    code, _, err = said("", "nothing.sql")
    assert code == 2 and "nothing.sql" in err


def test_ctrl_c_and_a_killed_java_end_the_query_and_not_the_shell(
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
        enter("SELECT ';' -- ;\r AS sign; SELEC;\r", r"sign\s*\n;\s+error\[unknown-statement\]")
        [java] = [c for c in psutil.Process(terminal.process.pid).children() if c.name() == "java"]
        java.kill()
        enter("SELECT 'lost' AS state;\r", r"(?s)error\[java-ended\].*Enter the query again")
        enter("SELECT counter + 7000 AS n FROM ticks LIMIT 1;\r", r"\n7000\n\(1 row in")
        os.write(terminal.screen, b"exit\r")
        assert terminal.end() == 0, terminal.text
        assert "Traceback" not in terminal.text
        assert "SELECT 6 * 7" in (tmp_path / "penstock/sql_history").read_text()
    finally:
        terminal.close()


def test_a_query_warms_up_the_session(penstock_spark: SparkSession, tmp_path: Path) -> None:
    started: Future[SparkSession] = Future()
    started.set_result(penstock_spark)
    state = StateDirectory(tmp_path / "warm-up")
    deadline = time.monotonic() + TIMEOUT_SECONDS
    with warm_up(started, tmp_path):
        while not state.read("complete"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    status = state.read("status.json")
    assert status is not None and status["nodes"]["nowhere"]["rows"] == 1


def test_a_warm_up_ends_with_the_shell(penstock_spark: SparkSession, tmp_path: Path) -> None:
    started: Future[SparkSession] = Future()
    with warm_up(started, tmp_path):
        started.set_result(penstock_spark)
    assert not StateDirectory(tmp_path / "warm-up").read("complete")
    failed: Future[SparkSession] = Future()
    failed.set_exception(PenstockError("no Java", code="no-java"))
    with warm_up(failed, tmp_path):
        pass
