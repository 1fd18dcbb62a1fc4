"""Arithmetic and functions that have another meaning in scripts of Arroyo than in Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.spec.dialects.arroyo.queries import translate_query
from penstock.sql.dialect.translate import translate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 / 2", "7 DIV 2"),
        ("a / b", "arroyo_divide(a, b)"),
        ("a + b * c / d", "a + arroyo_divide(b * c, d)"),
        ("a / b / c", "arroyo_divide(arroyo_divide(a, b), c)"),
        ("(a + b) / -f(c, d)", "arroyo_divide((a + b), -f(c, d))"),
        ("a / 2.5", "a / 2.5D"),
        ("a / 0.0 + .5", "arroyo_divide(a, 0.0D) + .5D"),
        ("a.b / w.end", "arroyo_divide(a.b, w.end)"),
        ("CASE WHEN a THEN b END / CASE WHEN c THEN CASE WHEN d THEN 1 END END",
         "arroyo_divide(CASE WHEN a THEN b END, CASE WHEN c THEN CASE WHEN d THEN 1 END END)"),
        ("a::DECIMAL(10, 2) / b::DOUBLE PRECISION * c",
         "arroyo_divide(a::DECIMAL(10, 2), b::DOUBLE PRECISION) * c"),
        ("sum(a) FILTER (WHERE b > 1) / count(*) OVER (PARTITION BY c)",
         "arroyo_divide(sum(a) FILTER (WHERE b > 1), count(*) OVER (PARTITION BY c))"),
        ("first_value(a) IGNORE NULLS OVER w / 2",
         "arroyo_divide(first_value(a) IGNORE NULLS OVER w, 2)"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY a) / b",
         "arroyo_divide(percentile_cont(0.5D) WITHIN GROUP (ORDER BY a), b)"),
        ("INTERVAL '1 hour' / 2", "INTERVAL '1 hour' / 2"),
        ("'a/b' || c", "'a/b' || c"),
        ("a * 1000 + 1 * 2 * b", "a * 1000L + 1L * 2L * b"),
        ("round(sum(q * 60) * 2, 1)", "arroyo_round_to(sum(q * 60L) * 2L, 1)"),
        ("repeat('x', 2 * 3) || repeat('y', n * 2)", "repeat('x', 2 * 3) || repeat('y', n * 2)"),
        ("repeat('x', (n * 2))", "repeat('x', (n * 2))"),
        ("repeat('x', abs(n * 2))", "repeat('x', abs(n * 2))"),
        ("count(*), a + 1, 1.5 * b", "count(*), a + 1, 1.5D * b"),
        ("1.5e3 + a.b", "1.5e3 + a.b"),
    ],
)  # fmt: skip
def test_arithmetic(text: str, expected: str) -> None:
    assert translate_query(text).text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log(a)", "log10(a)"),
        ("log(2, a)", "log(2, a)"),
        ("concat(a, concat(b, 1))", "concat_ws('', a, concat_ws('', b, 1))"),
        ("concat([1], b)", "concat([1], b)"),
        ("left(a, 2)", "left(a, 2)"),
        ("left(a, -2)", "substr(a, 1, length(a) - 2)"),
        ("left(a, n)", "substr(a, 1, if(n < 0, length(a) + n, n))"),
        ("right(a, -2)", "substr(a, 3)"),
        ("right(a, n)", "reverse(substr(reverse(a), 1, if(n < 0, length(a) + n, n)))"),
        ("substr(a, 2, n)", "substr(a, 2, n)"),
        ("substr(a, -2)", "substr(a, 1)"),
        ("substr(a, 0, 3)", "substr(a, 1, 3 - 1)"),
        ("substr(a, n)", "substr(a, if(n < 1, 1, n))"),
        ("substring(a FROM n FOR m)", "substr(a, if(n < 1, 1, n), if(n < 1, n + m - 1, m))"),
        ("substring(a FOR 3)", "substr(a, 1, 3)"),
        ("substring(a FROM 3)", "substring(a FROM 3)"),
        ("extract(dow FROM t)", "(extract(DAYOFWEEK FROM t) - 1)"),
        ("date_part('second', t)", "second(t)"),
        ("extract(second FROM INTERVAL '5 seconds')", "extract(second FROM INTERVAL '5 seconds')"),
        ("array_agg(a)", "array_agg(a) RESPECT NULLS"),
        ("array_agg(DISTINCT a) FILTER (WHERE b)",
         "array_agg(DISTINCT a) FILTER (WHERE b) RESPECT NULLS"),
        ("array_agg(a ORDER BY b)", "array_agg(a ORDER BY b NULLS LAST)"),
        ("approx_distinct(a)", "approx_count_distinct(a, 0.01D)"),
        ("array_agg(a) IGNORE NULLS", "array_agg(a) IGNORE NULLS"),
        ("array_position(array_sort(a), 1)", "CAST(list_position(list_sort(a), 1) AS BIGINT)"),
        ("array_sort(a, 'DESC')", "array_sort(a, 'DESC')"),
        ("cardinality(a)", "arroyo_cardinality(a)"),
        ("array_dims(a)", "CASE WHEN size(a) > 0 THEN arroyo_dims(a) END"),
        ("isnan(a)", "(a = DOUBLE('NaN'))"),
        ("from_unixtime(a)", "timestamp_seconds(a)"),
        ("CAST(a AS TEXT)", "arroyo_text(a)"),
        ("a.b::VARCHAR(3)::BIGINT", "arroyo_bigint(arroyo_text(a.b))"),
        ("CAST(CAST(f(a) AS BIGINT) AS TEXT)", "arroyo_text(arroyo_bigint(f(a)))"),
        ("'1'::BIGINT + TRY_CAST(a AS TEXT)", "'1'::BIGINT + TRY_CAST(a AS TEXT)"),
        ("(j ->> 'a')::BIGINT", "(j ->> 'a')::BIGINT"),
        ("a::BIGINT UNSIGNED", "a::BIGINT UNSIGNED"),
        ("left(substr(a, -1), -2) = log(b) / 2",
         "substr(substr(a, 1), 1, length(substr(a, 1)) - 2) = arroyo_divide(log10(b), 2)"),
    ],
)  # fmt: skip
def test_function(text: str, expected: str) -> None:
    assert translate_query(text).text == expected
    assert translate(expected).text == translate(translate(expected).text).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rank() OVER (PARTITION BY a ORDER BY b, f(c, 1) DESC, d NULLS FIRST)",
         "rank() OVER (PARTITION BY a ORDER BY b NULLS LAST, f(c, 1) DESC NULLS FIRST, "
         "d NULLS FIRST)"),
        ("sum(a) OVER (ORDER BY b ASC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
         "sum(a) OVER (ORDER BY b ASC NULLS LAST ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"),
        ("SELECT a FROM t WINDOW w AS (ORDER BY a) ORDER BY 1 DESC LIMIT 2",
         "SELECT a FROM t WINDOW w AS (ORDER BY a NULLS LAST) ORDER BY 1 DESC NULLS FIRST LIMIT 2"),
        ("percentile_disc(0.5D) WITHIN GROUP (ORDER BY a)",
         "percentile_disc(0.5D) WITHIN GROUP (ORDER BY a)"),
    ],
)  # fmt: skip
def test_order_of_nulls(text: str, expected: str) -> None:
    assert translate_query(text).text == expected


def test_only_scripts_of_arroyo(tmp_path: Path) -> None:
    for connector, expected in (("files", ()), ("single_file", ("arroyo_divide",))):
        path = tmp_path / f"{connector}.sql"
        path.write_text(
            f"CREATE TABLE t (a INT) WITH (connector = '{connector}', path = 'x', format = 'json');"
            "SELECT a / 2 AS b FROM t;"
        )
        assert tuple(each.name for each in app.plan(path).functions) == expected
