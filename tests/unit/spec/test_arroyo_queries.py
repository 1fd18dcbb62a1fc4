"""The meaning of a query depends on whether its script is one of Arroyo."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.spec.dialects.arroyo.queries import translate_query
from penstock.spec.documents.reading import load

ARROYO = "connector = 'single_file', path = 'x'"
PENSTOCK = "connector = 'files', path = 'x'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a[1]", "try_element_at(a, 1)"),
        ("a[0]", "try_element_at(a, nullif(0, 0))"),
        ("t.a[2][-1]", "try_element_at(try_element_at(t.a, 2), -1)"),
        ("a[n]", "get(a, CAST(n AS INT) - 1)"),
        ("f(a)[1] = '5'", "try_element_at(f(a), 1) = '5'"),
        ("[1, 2], ARRAY[3], m['k'], CAST(a AS INT[])", None),
        ("regexp_replace(a, 'x(y)', '<\\1>')", "regexp_replace(a, 'x(y)', '<\\1>', '')"),
        ("regexp_replace(a, 'x', '', 'i')", None),
        ("regexp_replace(a, 'x', 'y', 'g')", None),
        ("array_prepend(v, a)", "list_prepend(v, a)"),
        (
            "regexp_like(a, 'x'), regexp_count(a, 'x'), regexp_count(a, b, 2)",
            "regexp_like(a, 'x', ''), regexp_count(a, 'x', 1, ''), regexp_count(a, b, 2, '')",
        ),
        ("regexp_instr(a, 'x', 2)", "regexp_instr(a, 'x', 2, 1, '')"),
        ("regexp_like(a, 'x', 'i'), rlike(a, 'x'), regexp_extract(a, 'x')", None),
        ("a -> k ->> 'c', a -> 'b'::INT, a -> k = 'x', transform(xs, x -> x)", None),
        ('"a" || t."b"', "`a` || t.`b`"),
    ],
)
def test_expression(text: str, expected: str | None) -> None:
    assert translate_query(text).text == (expected or text)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT a -> 'b' AS b, t.a -> 'b' -> 'c' AS c FROM t",
            "SELECT coalesce(a -> 'b', 'null') AS b, coalesce(t.a -> 'b' -> 'c', 'null') AS c "
            "FROM t",
        ),
        (
            "SELECT a -> k AS b, a -> concat(k, '') -> 'c' AS c FROM t",
            "SELECT coalesce(a -> k, 'null') AS b, coalesce(a -> concat_ws('', k, '') -> 'c', "
            "'null') AS c FROM t",
        ),
        (
            "SELECT a ->> 'b' AS b, (a -> 'b')::INT AS i, x + 1 AS x FROM t WHERE a -> 'b' = '1'",
            None,
        ),
    ],
)
def test_written_query(query: str, expected: str | None) -> None:
    assert translate_query(query, is_written=True).text == (expected or query)


def test_missing_values_of_inner_queries_are_null() -> None:
    query = "SELECT b FROM (SELECT a -> 'b' AS b FROM t)"
    assert translate_query(query, is_written=True).text == query
    assert translate_query("SELECT a -> 'b' AS b FROM t").text == "SELECT a -> 'b' AS b FROM t"


@pytest.mark.parametrize(
    ("options", "expected"),
    [(PENSTOCK, "a[1]"), (ARROYO, "try_element_at(a, 1)")],
)
def test_only_scripts_of_arroyo_count_from_one(tmp_path: Path, options: str, expected: str) -> None:
    path = tmp_path / "s.sql"
    path.write_text(
        f"CREATE TABLE t (a INT[], b INT GENERATED ALWAYS AS (a[1])) WITH ({options}, "
        "format = 'json');\nSELECT a[1] AS c FROM t;\n"
    )
    app.plan(path)
    transforms = load([path], env={}).root.data()["transforms"]
    assert transforms["result_query"]["sql"] == f"SELECT {expected} AS c FROM t"
    assert transforms["t_generated"]["set"] == {"b": expected}
