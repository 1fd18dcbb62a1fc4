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
    ("query", "expected"),
    [
        ("SELECT a[1] FROM t", "SELECT try_element_at(a, 1) FROM t"),
        ("SELECT a[0] FROM t", "SELECT try_element_at(a, nullif(0, 0)) FROM t"),
        ("SELECT t.a[2][-1] FROM t", "SELECT try_element_at(try_element_at(t.a, 2), -1) FROM t"),
        ("SELECT a[n] FROM t", "SELECT get(a, CAST(n AS INT) - 1) FROM t"),
        ("SELECT f(a)[1] = '5' FROM t", "SELECT try_element_at(f(a), 1) = '5' FROM t"),
        ("SELECT [1, 2], ARRAY[3], m['k'], CAST(a AS INT[]) FROM t", None),
        (
            "SELECT regexp_replace(a, 'x(y)', '<\\1>') FROM t",
            "SELECT regexp_replace(a, 'x(y)', '<\\1>', '') FROM t",
        ),
        ("SELECT regexp_replace(a, 'x', '', 'i') FROM t", None),
        ("SELECT regexp_replace(a, 'x', 'y', 'g') FROM t", None),
        ("SELECT array_prepend(v, a) FROM t", "SELECT list_prepend(v, a) FROM t"),
        (
            "SELECT regexp_like(a, 'x'), regexp_count(a, 'x'), regexp_count(a, b, 2) FROM t",
            "SELECT regexp_like(a, 'x', ''), regexp_count(a, 'x', 1, ''), "
            "regexp_count(a, b, 2, '') FROM t",
        ),
        ("SELECT regexp_instr(a, 'x', 2) FROM t", "SELECT regexp_instr(a, 'x', 2, 1, '') FROM t"),
        ("SELECT regexp_like(a, 'x', 'i'), rlike(a, 'x'), regexp_extract(a, 'x') FROM t", None),
        (
            "SELECT a -> 'b' AS b, t.a -> 'b' -> 'c' FROM t",
            "SELECT coalesce(a -> 'b', 'null') AS b, coalesce(t.a -> 'b' -> 'c', 'null') FROM t",
        ),
        (
            "SELECT a -> k AS b, a -> concat(k, '') -> 'c' FROM t",
            "SELECT coalesce(a -> k, 'null') AS b, coalesce(a -> concat_ws('', k, '') -> 'c', "
            "'null') FROM t",
        ),
        ("SELECT a -> k ->> 'c', a -> 'b'::INT, a -> k = 'x', transform(xs, x -> x) FROM t", None),
        ("SELECT a ->> 'b', (a -> 'b')::INT, x + 1 FROM t WHERE a -> 'b' = '1'", None),
    ],
)
def test_query(query: str, expected: str | None) -> None:
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
        "format = 'json');\nSELECT a[1] FROM t;\n"
    )
    app.plan(path)
    transforms = load([path], env={}).root.data()["transforms"]
    assert transforms["result_query"]["sql"] == f"SELECT {expected} FROM t"
    assert transforms["t_generated"]["set"] == {"b": expected}
