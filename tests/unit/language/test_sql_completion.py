"""Completion in SQL scripts and in the clauses of queries."""

from __future__ import annotations

import pytest
from service_texts import SQL, complete, completed, hover, labels

from penstock.language.functions import function_help
from penstock.sql.dialect.window_calls import WINDOWS
from penstock.sql.functions import BUILTINS

TABLES = """\
CREATE TABLE orders (id INT, customer STRING, at TIMESTAMP) WITH (connector = 'files', path = 'x');
CREATE TABLE names (customer STRING, name STRING) WITH (connector = 'files', path = 'y');
CREATE VIEW sums AS SELECT customer AS who, count(*) AS n FROM orders GROUP BY customer;
"""


def found(query: str) -> list[str]:
    return labels(TABLES + query, SQL)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT |~ FROM orders", ["id", "customer", "at"]),
        ("SELECT cu|~ FROM orders", ["customer"]),
        ("SELECT s.|~ FROM sums s", ["who", "n"]),
        ("SELECT count(i|~ FROM orders", ["id"]),
        ("SELECT * FROM orders WHERE i|~", ["id"]),
        ("SELECT * FROM orders o WHERE o.id = 1 AND o.|~", ["id", "customer", "at"]),
        ("WITH q AS (SELECT id AS k FROM orders) SELECT q.|~ FROM q", ["k"]),
        ("SELECT * FROM (SELECT who FROM sums) x WHERE x.|~", ["who"]),
        ("SELECT * FROM sums WHERE EXISTS (SELECT 1 FROM orders o WHERE o.|~", ["id"]),
        ("INSERT INTO orders (|~", ["id", "customer", "at"]),
        ("SELECT id AS key FROM orders GROUP BY ke|~", ["key"]),
    ],
)  # fmt: skip
def test_columns(query: str, expected: list[str]) -> None:
    assert found(query)[: len(expected)] == expected


def test_relations() -> None:
    assert found("SELECT * FROM |~") == ["orders", "names", "sums"]
    assert found("SELECT * FROM orders JOIN na|~") == ["names"]
    assert found("WITH q AS (SELECT 1 AS a) SELECT * FROM |~")[0] == "q"
    assert found("INSERT INTO na|~") == ["names"]


def test_columns_of_several_relations_are_qualified() -> None:
    names = found("SELECT |~ FROM orders o JOIN names n ON o.customer = n.customer")
    assert {"o.customer", "n.customer", "id", "name"} <= {*names}
    assert "customer" not in names


def test_functions_have_their_forms() -> None:
    item = next(i for i in complete(f"{TABLES}SELECT date_tr|~ FROM orders", SQL))
    assert (item.label, item.text, item.detail) == (
        "date_trunc", "date_trunc($0)", "date_trunc(fmt, ts)",
    )  # fmt: skip
    assert "truncated" in item.documentation
    text = (
        f"CREATE FUNCTION twice(x INT) RETURNS INT RETURN x * 2;\n{TABLES}SELECT twi|~ FROM orders;"
    )
    assert labels(text, SQL) == ["twice"]


def test_all_functions_that_queries_may_call_are_described() -> None:
    known = function_help()
    assert BUILTINS - known.keys() == set()
    assert {*WINDOWS, "calendar_window"} <= known.keys()
    assert not [name for name, each in known.items() if not each.forms or not each.text]


def test_statements_and_options_of_tables() -> None:
    assert {"CREATE TABLE", "INSERT INTO"} <= {*labels("|~", SQL)}
    table = "CREATE TABLE a (id INT) WITH ("
    assert labels(f"{table}|~", SQL)[0] == "connector"
    assert labels(f"{table}connector = 'kaf|~", SQL) == ["kafka"]
    assert labels(f"{table}connector = kaf|~)", SQL) == ["kafka"]
    assert completed(f"{table}connector = kaf|~)", "kafka", SQL).endswith("= 'kafka')")
    kafka = f"{table}connector = 'kafka', "
    assert labels(f"{kafka}bro|~)", SQL) == ["brokers"]
    assert labels(f"{kafka}format = 'csv', csv.deli|~);", SQL) == ["csv.delimiter"]
    assert "connector" not in labels(f"{kafka}|~)", SQL)
    assert labels("CREATE TABLE a (id BIG|~", SQL) == ["BIGINT"]
    sink = f"{table}connector = 'files', mo|~);\nINSERT INTO a SELECT 1 AS id;"
    assert labels(sink, SQL) == ["mode"]


@pytest.mark.parametrize("query", ["SELECT 'a|~", "SELECT a -- b|~", "SELECT 1 /* a|~"])
def test_nothing_in_strings_and_comments(query: str) -> None:
    assert found(query) == []


def test_hover() -> None:
    assert "id INT" in hover(f"{TABLES}SELECT i|~d FROM orders", SQL)
    assert "who STRING" in hover(f"{TABLES}SELECT * FROM su|~ms", SQL)
    assert "avg(expr)" in hover(f"{TABLES}SELECT a|~vg(id) FROM orders", SQL)
    assert "Apache Kafka" in hover("CREATE TABLE a (id INT) WITH (connector = 'kaf|~ka')", SQL)
    assert "`brokers`" in hover(
        "CREATE TABLE a () WITH (connector = 'kafka', bro|~kers = 'x')", SQL
    )
