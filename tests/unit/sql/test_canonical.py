"""The canonical form of SQL: formatting is not part of it, and each other character is."""

from __future__ import annotations

import pytest

from penstock.sql.canonical import canonical_sql

QUERY = (
    "SELECT k, 'a  b' AS `N x`, CAST(sum(v) AS INT) AS n FROM a "
    "WHERE at > DATE '2020-01-01' - INTERVAL 5 DAYS AND v IS NOT NULL GROUP BY k, window(at, '1 h')"
)

SAME = {
    "line ends of Windows": QUERY.replace(" FROM", "\r\nFROM").replace(" WHERE", "\r\nWHERE"),
    "blanks": "\n\n" + QUERY.replace(", ", "  ,\t") + "  \n",
    "no blanks": QUERY.replace(" > ", ">").replace("k, w", "k,w"),
    "a comment of a line": QUERY.replace("FROM", "-- it's here\nFROM"),
    "a comment at the end": f"{QUERY} -- the end",
    "comments": f"/* one */ {QUERY.replace('FROM', '/* a /* b */ c */ FROM')}",
    "keywords": QUERY.replace("SELECT", "select").replace("GROUP BY", "group\nBy"),
    "calls": QUERY.replace("sum(", "SUM (").replace("window(", "Window("),
    "types and units": QUERY.replace("AS INT)", "as int)").replace("DAYS", "days"),
    "literals": QUERY.replace("DATE '", "date '").replace("INTERVAL", "Interval"),
    "semicolons": f"{QUERY} ;; -- end",
}

OTHER = {
    "blanks in a string": QUERY.replace("'a  b'", "'a b'"),
    "a tab in a string": QUERY.replace("'a  b'", "'a \tb'"),
    "case in a string": QUERY.replace("'a  b'", "'A  b'"),
    "a comment in a string": QUERY.replace("'a  b'", "'a -- b'"),
    "a quoted name": QUERY.replace("`N x`", "`n x`"),
    "the case of a column": QUERY.replace("AS n", "AS N"),
    "a field whose name is a keyword": QUERY.replace("AS n", "AS Select"),
    "a number": QUERY.replace("5 DAYS", "5L DAYS"),
    "an operator": QUERY.replace(">", ">="),
    "another name": QUERY.replace("FROM a", "FROM b"),
    "quotes": QUERY.replace("'a  b'", '"a  b"'),
    "a raw string": QUERY.replace("'a  b'", "r'a  b'"),
    "a hint": QUERY.replace("SELECT", "SELECT /*+ REPARTITION(2) */"),
    "words that are one": QUERY.replace("IS NOT NULL", "IS NOTNULL"),
}


@pytest.mark.parametrize("name", SAME)
def test_formatting_does_not_change_the_form(name: str) -> None:
    assert SAME[name] != QUERY and canonical_sql(SAME[name]) == canonical_sql(QUERY)
    assert canonical_sql(canonical_sql(SAME[name])) == canonical_sql(QUERY)


@pytest.mark.parametrize("name", OTHER)
def test_other_changes_change_the_form(name: str) -> None:
    assert OTHER[name] != QUERY and canonical_sql(OTHER[name]) != canonical_sql(QUERY)


def test_the_case_of_fields_is_kept() -> None:
    text = "SELECT struct(t.Date, A AS As, b Date)::STRUCT<Date: INT> FROM t"
    assert canonical_sql(text) == (
        "SELECT STRUCT ( t . Date , A AS As , b Date ) :: STRUCT < Date : INT > FROM t"
    )


def test_a_text_that_cannot_be_read_is_kept() -> None:
    assert canonical_sql(" it's  a ") == "it's  a"
    assert canonical_sql("") == canonical_sql(" -- only a comment ") == ""
