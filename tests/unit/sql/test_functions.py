"""Functions in a SQL text: state, chance and the current time."""

from __future__ import annotations

import pytest

from penstock.sql import determinism, facts

STREAMS = frozenset({"late", "flights"})


@pytest.mark.parametrize(
    "sql",
    [
        *(
            f"SELECT {name}(v) AS x FROM late"
            for name in (
                "mean", "std", "any", "some", "every", "try_sum", "try_avg", "bit_and",
                "histogram_numeric", "`mean`", "system.builtin.mean", "listagg",
                "kll_sketch_agg_bigint",
            )
        ),
        "SELECT mode() WITHIN GROUP (ORDER BY v) FROM late",
        "SELECT * FROM late PIVOT (mean(v) FOR k IN (1, 2))",
        "SELECT 1 AS x FROM late HAVING true",
        "SELECT * FROM late TABLESAMPLE (10 ROWS)",
        "SELECT v FROM late WHERE v > (SELECT max(v) FROM late)",
        "SELECT v FROM late WHERE v IN (SELECT v FROM flights)",
        "SELECT v FROM late WHERE EXISTS (SELECT 1 FROM flights WHERE flights.v = late.v)",
        "SELECT 1 FROM late, LATERAL (SELECT v FROM flights)",
        "WITH one AS (SELECT v FROM late) SELECT 1 FROM one JOIN one AS other USING (v)",
    ],
)  # fmt: skip
def test_a_query_over_several_rows_keeps_state(sql: str) -> None:
    assert facts.parse_facts(sql).stateful(STREAMS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v FROM late WHERE name LIKE ANY ('a%', 'b%')",
        "SELECT v FROM late JOIN (SELECT mean(w) AS w FROM names) USING (k)",
        "SELECT v FROM late WHERE v IN (SELECT v FROM names)",
        "SELECT v, x FROM late LATERAL VIEW explode(xs) AS x",
        "SELECT * FROM late UNPIVOT (v FOR k IN (a, b))",
        "SELECT * FROM late TABLESAMPLE (10 PERCENT)",
        "SELECT v FROM (SELECT v FROM late) UNION ALL SELECT v FROM flights",
        "WITH one AS (SELECT v FROM late) SELECT v FROM one WHERE v > 1",
        "SELECT aggregate(xs, 0, (a, x) -> a + x) AS mean FROM late",
    ],
)
def test_a_query_over_single_rows_keeps_no_state(sql: str) -> None:
    assert not facts.parse_facts(sql).stateful(STREAMS)


@pytest.mark.parametrize(
    "text",
    [
        "uniform(1, 5)", "randstr(5)", "unix_timestamp()", "unix_timestamp( )", "curdate()",
        "now()", "NOW ()", "`now`()", "current_timestamp", "current_timestamp()", "current_date",
        "localtimestamp()", "localtime", "current_time(3)", "rand(7)", "rand(/* seed */ 7)",
        "shuffle(xs)", "monotonically_increasing_id()", "uuid()", "reflect('java.util.UUID', 'x')",
        "SELECT * FROM late TABLESAMPLE (10 PERCENT)", "TIMESTAMP 'now'",
    ],
)  # fmt: skip
def test_chance_and_the_current_time_are_not_deterministic(text: str) -> None:
    assert not determinism.deterministic(text)


@pytest.mark.parametrize(
    "text",
    [
        "unix_timestamp(at)", "unix_timestamp(at, 'yyyy')", "'rand()'", "now", "uuid", "random + 1",
        "x -- rand()", "date_add(day, 1)", "initcap(\"now()\")",
    ],
)  # fmt: skip
def test_names_without_calls_are_deterministic(text: str) -> None:
    assert determinism.deterministic(text)
