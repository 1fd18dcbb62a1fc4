"""Inputs of the shell: commands and statements, their errors, and the places of the errors."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.shell.commands import EndOfShell
from penstock.cli.shell.execute import execute
from penstock.cli.shell.input import is_complete, read_parts
from penstock.cli.shell.shell import Shell
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError

ORDERS = "CREATE TABLE orders (id INT) WITH (connector = 'files', path = 'in', format = 'json');"
BIG = "CREATE VIEW big AS SELECT * FROM orders WHERE id > 10;"
TWICE = "CREATE FUNCTION twice(x INT) RETURNS INT RETURN 2 * x;"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    spark: Future[Any] = Future()
    shell = Shell(spark, tmp_path)
    shell.load(f"{ORDERS} {BIG} {TWICE}", "a.sql")
    return shell


def errors(shell: Shell, text: str) -> list[PenstockError]:
    """The errors of a text."""
    return list(execute(shell, text))


def test_parts_of_an_input() -> None:
    text = (
        "-- a; b\nSELECT 'x;''y', \"q;\", `b;` /* ; */\n;;\\d orders; it's\n"
        "  exit ; -- leave\nSELECT $$ ;\n\\q $$;quit\nSELECT exit"
    )
    assert [(part.text, part.is_command) for part in read_parts(text)] == [
        ("SELECT 'x;''y', \"q;\", `b;` /* ; */\n", False),
        ("\\d orders; it's", True),
        ("exit", True),
        ("SELECT $$ ;\n\\q $$", False),
        ("quit", True),
        ("SELECT exit", False),
    ]


@pytest.mark.parametrize("word", ["exit", "QUIT", "exit;", " quit ; ", "\\q", "\\q;", ".quit"])
def test_words_that_end_the_shell(shell: Shell, word: str) -> None:
    with pytest.raises(EndOfShell):
        errors(shell, f"SHOW TABLES;\n{word}\nSHOW VIEWS")


@pytest.mark.parametrize("word", ["help", "HELP;", "\\?", "\\h", "?", ".help"])
def test_words_for_help(shell: Shell, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert not errors(shell, word)
    out = capsys.readouterr().out
    assert "\\save FILE.sql" in out and "DESCRIBE NAME;" in out


TABLES = "kind      name\ntable     orders (1 column)\nview      big\n"


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("SHOW TABLES", "kind   name\ntable  orders (1 column)\nview   big\n"),
        ("show /* all */ views;", "kind  name\nview  big\n"),
        ("SHOW FUNCTIONS;", "kind      name\nfunction  twice\n"),
        ("SHOW CREATE VIEW Big", f"{BIG}\n"),
        ("SHOW CREATE TABLE `orders`", f"{ORDERS}\n"),
        ("\\dt", f"{TABLES}function  twice\n"),
        ("SET", "no settings\n"),
        ("SET runtime.trigger = '1s'; SHOW ALL; RESET ALL; SET;",
         "set runtime.trigger\nsetting          value\nruntime.trigger  1s\n"
         "reset runtime.trigger\nno settings\n"),
        ("DROP VIEW IF EXISTS nothing", 'there is no view "nothing"\n'),
        ('DROP VIEW "big"; DROP TABLE IF EXISTS orders; SHOW TABLES;',
         "dropped view big\ndropped table orders\nno tables or views\n"),
        ("DROP FUNCTION twice; SHOW FUNCTIONS", "dropped function twice\nno functions\n"),
        ("CREATE VIEW IF NOT EXISTS big AS SELECT id FROM orders", "view big exists\n"),
    ],
)  # fmt: skip
def test_statements_about_definitions(
    shell: Shell, statement: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [format_error(error) for error in errors(shell, statement)] == []
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("statement", "code", "message", "hint"),
    [
        ("DROP TABLE big", "wrong-kind", '"big" is a view', "Enter DROP VIEW big."),
        ("DROP TABLE ordes", "unknown-table", 'no table "ordes"', 'did you mean "orders"?'),
        ("DROP TABLE orders", "in-use", "view big reads orders", "Enter DROP VIEW big first."),
        ("DROP orders", "usage", "expected DROP TABLE NAME or DROP VIEW NAME", None),
        ("SHOW TABLE", "usage", "expected SHOW TABLES, SHOW VIEWS", None),
        ("SHOW CREATE TABLE x", "unknown-table", 'no table or view "x"',
         "known: big, orders, twice"),
        ("RESET runtime.trigger", "unknown-setting", '"runtime.trigger" is not set',
         "Enter SET for the settings."),
        ("DESCRIBE", "usage", "expected DESCRIBE query, DESCRIBE NAME", None),
        ("DESCRIBE ordes", "unknown-table", 'no table or view "ordes"', 'did you mean "orders"?'),
        ("EXPLAIN SELECT 1 FROM x", "unknown-table", 'no table or view "x"',
         "known: big, orders, twice"),
        ("EXPLAIN SELECT 1", "missing-option", "reads no table", None),
        ("EXPLAIN DROP TABLE x", "usage", "expected EXPLAIN query", None),
        ("EXPLAIN CREATE VIEW v AS SELECT id FROM orders", "usage", "expected a query",
         "write DESCRIBE NAME for the columns of a table or view"),
        ("EXPLAIN orders", "usage", "expected EXPLAIN query", None),
        ("ALTER TABLE orders ADD x INT", "unsupported-statement", "ALTER is not supported",
         "change the CREATE statement"),
        ("CREATE VIEW v AS SELECT 1 AS x", "missing-option", "the query of view v reads no table",
         "write the query where its rows are read: FROM (...) AS v"),
        ("INSERT INTO orders VALUES (1)", "missing-option",
         'the query that writes "orders" reads no table',
         "select the rows FROM a table; the connector generate makes rows"),
        ("INSERT INTO orders SELECT id FROM big", "reads-sink",
         'the query reads "orders", which it writes', "create another table for writing"),
        ("SET runtime.trigger = 5", "invalid-value", '"trigger" of runtime expects', None),
        ("SELECT * FROM ordes", "unknown-table", 'no table or view "ordes"',
         'did you mean "orders"?'),
        ("INSERT INTO b SELECT id FROM orders", "unknown-table", 'no table or view "b"',
         "known: big, orders, twice"),
        ("SELECT 'a", "invalid-sql", "this ' is not closed", None),
    ],
)  # fmt: skip
def test_errors_of_statements(
    shell: Shell, statement: str, code: str, message: str, hint: str | None
) -> None:
    before = shell.definitions
    [error] = errors(shell, statement)
    assert (error.code, error.hint) == (code, hint)
    assert message in error.message
    assert shell.definitions == before


def test_errors_are_located_in_the_input(shell: Shell) -> None:
    text = (
        "SHOW TABLES; SELECT * FROM ordes;\n"
        "\\d nothing\n"
        "SHOW VIEWS; CREATE TABLE t (id INT)\n  WITH (connector = 'fils');\n"
        "SHOW VIEWS; SELCT 1; SELECT 'a"
    )
    found = [error.where for error in errors(shell, text)]
    assert [None if at is None else (at.line, at.column) for at in found] == [
        (1, 28), None, (4, 22), (5, 13), (5, 29),
    ]  # fmt: skip
    assert found[3] is not None and found[3].text == "SHOW VIEWS; SELCT 1; SELECT 'a"


def test_statements_after_an_error_run_unless_they_use_it(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "CREATE VIEW big AS SELECT id FROM nothing; SELECT * FROM big;"
        "CREATE VIEW more AS SELECT * FROM big; SELECT * FROM more; SHOW VIEWS;"
    )
    assert [error.message for error in errors(shell, text)] == [
        'there is no table or view "nothing"',
        'the statement uses "big", whose definition has an error',
        'the statement uses "big", whose definition has an error',
        'the statement uses "more", whose definition has an error',
    ]
    assert capsys.readouterr().out == "kind  name\nview  big\n"
    assert "WHERE id > 10" in shell.definitions.entries["big"].text


def test_a_query_needs_only_the_definitions_that_it_uses(shell: Shell) -> None:
    shell.load("CREATE VIEW broken AS SELECT a b c FROM orders;", "b.sql")
    assert set(shell.plan(_entry("SELECT * FROM big")).nodes) == {
        "orders", "big", "result_query", "result",
    }  # fmt: skip


@pytest.mark.slow
def test_a_table_without_connector_has_the_rows_of_its_inserts(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    definitions = (
        "CREATE TABLE both (id INT); INSERT INTO both SELECT id FROM orders;"
        "INSERT INTO both SELECT id + 1 FROM big; CREATE TABLE empty (id INT);"
    )
    assert shell.load(f"{definitions} SELECT * FROM both;", "b.sql") == 1
    nodes = set(shell.plan(_entry("SELECT * FROM both")).nodes)
    assert nodes >= {"orders", "big", "both", "result"} and "empty" not in nodes
    [unwritten, drop, wrong] = errors(
        shell, "SELECT * FROM empty; DROP TABLE orders; SET runtime.trigger = 5"
    )
    assert (unwritten.code, wrong.code) == ("unwritten-table", "invalid-value")
    assert drop.message == "view big reads orders"
    assert not errors(shell, "\\d\nDROP TABLE both; DROP VIEW big; DROP TABLE orders; \\d")
    assert "both (1 column)" in capsys.readouterr().out
    assert list(shell.definitions.entries) == ["twice", "empty"]


def _entry(text: str) -> Any:
    from penstock.cli.shell.definitions import read_entries

    [entry] = read_entries(text)
    return entry


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True), ("SELECT 1", False), ("SELECT 1; SELECT 2", False), ("help", True),
        ("\\d orders", True), ("SELECT ';", False), ("-- SELECT 1;", False), ("", False),
    ],
)  # fmt: skip
def test_an_input_is_complete_with_the_semicolon_of_its_statement(
    text: str, complete: bool
) -> None:
    assert is_complete(text) is complete
