"""Definitions of the shell, and statements that are complete."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.shell.commands import EndOfShell, execute
from penstock.cli.shell.definitions import Definitions, read_entries
from penstock.cli.shell.input import is_complete
from penstock.cli.shell.script import Script
from penstock.cli.shell.shell import Shell
from penstock.core.errors import PenstockError, UserError

ORDERS = "CREATE TABLE orders (id INT) WITH (connector = 'files', path = 'in', format = 'json')"
VOID = "CREATE TABLE void (id INT) WITH (connector = 'blackhole')"
BIG = "CREATE VIEW big AS SELECT * FROM orders WHERE id > 10"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    spark: Future[Any] = Future()
    return Shell(spark, tmp_path)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; -- all", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT 1 -- ;", False),
        ("/* ;", False),
        ("", False),
        ("SELECT $$ ;", False),
        ("SELECT $a$ ; $a$;", True),
        ("exit", True),
        ("QUIT ;", True),
        ("\\d orders", True),
        ("-- done\nhelp", True),
        ("SELECT 1\nexit", False),
        ("exit (1", False),
    ],
)
def test_a_statement_ends_with_a_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_definition_replaces_the_one_of_its_name(shell: Shell) -> None:
    shell.load(f"{ORDERS}; {BIG}; SET name = 'a'; SET name = 'b';", "a.sql")
    assert list(shell.definitions.entries) == ["orders", "big", "SET name"]
    shell.load("CREATE VIEW BIG AS SELECT id FROM orders;", "a.sql")
    assert "WHERE" not in Script.of(shell.definitions).text


def test_a_table_that_cannot_be_read_is_used_by_its_insert_only(shell: Shell) -> None:
    shell.load(f"{ORDERS}; {VOID};", "a.sql")
    [select, insert] = read_entries("SELECT * FROM orders; INSERT INTO Void SELECT id FROM orders")
    assert list(shell.definitions.of_query(select).entries) == ["orders"]
    assert list(shell.definitions.of_query(insert).entries) == ["orders", "void"]
    assert set(shell.plan(insert).nodes) >= {"orders", "void"}


def test_a_query_comes_first_so_that_its_lines_are_those_of_the_text() -> None:
    [orders, query] = read_entries(f"{ORDERS}; SELECT id\nFROM orders;")
    script = Script.of(Definitions().add(orders), query)
    assert script.text.startswith("SELECT id\nFROM orders;\nCREATE")


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("CREATE VIEW v AS SELECT * FROM orers;", "unknown-node", 1),
        ("CREATE TABLE t (id INT)\nWITH (connector = 'fils', path = 'x');", "unknown-type", 2),
        ("CREATE TABLE t (id INT)\nWITH (connector = 'blackhole', x = 1);", "unknown-option", 2),
        ("CREAT TABLE t (id INT);", "unknown-statement", 1),
    ],
)
def test_a_wrong_definition_is_not_kept(shell: Shell, text: str, code: str, line: int) -> None:
    shell.load(f"{ORDERS};", "a.sql")
    with pytest.raises(PenstockError) as caught:
        shell.load(text, "b.sql")
    assert caught.value.where is not None and caught.value.where.line == line
    assert caught.value.code == code
    assert list(shell.definitions.entries) == ["orders"]


@pytest.mark.slow
def test_commands(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shell.load(f"{ORDERS}; {VOID}; {BIG};", "a.sql")
    execute(shell, "\\d")
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["kind", "name"],
        ["table", "orders", "(1", "column)"],
        ["table", "void", "(1", "column)"],
        ["view", "big"],
    ]
    path = tmp_path / "saved.sql"
    execute(shell, f"\\save {path}")
    assert path.read_text() == f"{ORDERS};\n{VOID};\n{BIG};\n"
    execute(shell, "\\drop big")
    assert capsys.readouterr().out.endswith("dropped view big\n")
    assert list(shell.definitions.entries) == ["orders", "void"]
    with pytest.raises(EndOfShell):
        execute(shell, "\\q")


def test_saved_inserts_are_those_of_existing_tables(shell: Shell, tmp_path: Path) -> None:
    other = VOID.replace("void", "other")
    shell.load(f"{ORDERS}; {VOID}; {other};", "a.sql")
    into = [f"INSERT INTO {name} SELECT id FROM orders" for name in ("void", "void", "other")]
    shell.inserts += [entry for text in into for entry in read_entries(text)]
    execute(shell, "\\drop other")
    path = tmp_path / "it's saved.sql"
    execute(shell, f"\\save '{path}'")
    assert path.read_text() == f"{ORDERS};\n{VOID};\n{into[0]};\n"


def test_a_declared_sink_is_described_by_its_statement(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = ORDERS.replace("WITH (", "WITH (type = 'sink', ")
    shell.load(f"{sink}; CREATE TABLE later;", "a.sql")
    execute(shell, "\\d orders")
    assert capsys.readouterr().out == f"{sink};\n"
    assert list(shell.definitions.entries) == ["orders", "later"]


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("\\dd", "unknown command \\dd", 'did you mean "\\d"?'),
        ("\\d orderz", 'there is no table or view "orderz"', 'did you mean "orders"?'),
        ("\\drop x", 'there is no table or view "x"', "known: orders"),
        ("\\drop", "expected the name of a table or view", "Enter \\drop NAME."),
        ("\\save", "expected a file name with the suffix .sql", None),
        ("\\save a.yaml", "expected a file name with the suffix .sql", None),
        ("\\save nowhere/a.sql", "cannot write nowhere/a.sql: No such file or directory", None),
        ("\\explain", "expected one query", "Enter \\explain SELECT ..."),
    ],
)
def test_wrong_commands(shell: Shell, line: str, message: str, hint: str | None) -> None:
    shell.load(f"{ORDERS};", "a.sql")
    with pytest.raises(UserError) as caught:
        execute(shell, line)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_definition_that_a_view_uses_is_not_dropped(shell: Shell) -> None:
    shell.load(f"{ORDERS}; {BIG};", "a.sql")
    with pytest.raises(UserError, match="view big reads orders"):
        execute(shell, "\\drop orders")
    assert "orders" in shell.definitions.entries
