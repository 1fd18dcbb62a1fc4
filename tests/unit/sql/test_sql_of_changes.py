"""SQL over changes: the operation column, conditions, and names of columns."""

from __future__ import annotations

import pytest

from penstock.core.errors import PlanError
from penstock.sql.change_rewrite import filters_by_chance, rewrite_for_changes
from penstock.sql.facts import parse_facts

PASSES = (
    "CASE WHEN COALESCE(id > 1, FALSE) THEN `c`.`_op` WHEN `c`.`_op` IN ('u', 'd') THEN 'd' "
    "ELSE `c`.`_op` END AS `_op`"
)
WHERE = "WHERE (id > 1) OR COALESCE(NOT `c`.`_op` IN ('i', 'ub'), TRUE)"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM c", "SELECT id, `c`.`_op` AS `_op` FROM c"),
        ("SELECT id FROM C AS x", "SELECT id, `x`.`_op` AS `_op` FROM C AS x"),
        ("SELECT id FROM c WHERE id > 1", f"SELECT id, {PASSES} FROM c {WHERE}"),
        ("SELECT * FROM c WHERE id > 1", f"SELECT * EXCEPT (`_op`), {PASSES} FROM c {WHERE}"),
        ("SELECT id FROM c UNION ALL SELECT id FROM s",
         "SELECT id, `c`.`_op` AS `_op` FROM c UNION ALL SELECT id, 'i' AS `_op` FROM s"),
        ("WITH k AS (SELECT id FROM c) SELECT id FROM k",
         "WITH k AS (SELECT id, `c`.`_op` AS `_op` FROM c) SELECT id, `k`.`_op` AS `_op` FROM k"),
        ("SELECT a FROM c AS c(a)", "SELECT a, `c`.`_op` AS `_op` FROM c AS c(a, `_op`)"),
    ],
    ids=["list", "alias", "where", "star", "union", "cte", "names"],
)  # fmt: skip
def test_the_operation_is_kept(sql: str, expected: str) -> None:
    rewritten = rewrite_for_changes(parse_facts(sql), {"c"}, "_op")
    assert rewritten is not None and rewritten.sql == expected
    assert rewritten.required == ("AS c(a)" in sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM c", "SELECT c.* FROM c", "SELECT id FROM s", "SELECT * EXCEPT (_op) FROM c",
        "SELECT id, _op FROM c", "WITH c AS (SELECT id FROM s) SELECT id FROM c",
        "WITH C AS (SELECT id FROM s) SELECT id FROM c",
        "not sql",
    ],
)  # fmt: skip
def test_a_query_stays_as_it_is(sql: str) -> None:
    assert rewrite_for_changes(parse_facts(sql), {"c"}, "_op") is None


def test_a_window_requires_a_time() -> None:
    facts = parse_facts("SELECT id, window(at, '1 hour').start FROM c WHERE id > 1 OR id < 0")
    rewritten = rewrite_for_changes(facts, {"c"}, "_op")
    assert rewritten is not None
    assert rewritten.sql == (
        "SELECT id, `WINDOW`(COALESCE(at, CAST('1970-01-01' AS TIMESTAMP)), '1 hour').start, "
        + PASSES.replace("id > 1", "(id > 1 OR id < 0) AND NOT at IS NULL")
        + " FROM c "
        + WHERE.replace("(id > 1)", "((id > 1 OR id < 0) AND NOT at IS NULL)")
    )
    complete = rewrite_for_changes(facts, {"c"}, "_op", complete=True)
    assert complete is not None and "NOT at IS NULL" not in complete.sql


def test_a_calendar_window_requires_a_time() -> None:
    day = "date_trunc('day', at)"
    window = f"named_struct('start', {day}, 'end', {day} + INTERVAL '1' DAY)"
    facts = parse_facts(f"SELECT *, {window} AS w FROM c")
    for complete in (False, True):
        rewritten = rewrite_for_changes(facts, {"c"}, "_op", complete=complete)
        assert rewritten is not None and "NOT at IS NULL" in rewritten.sql.partition("WHERE")[2]


def test_relations_without_a_name() -> None:
    rewritten = rewrite_for_changes(
        parse_facts("SELECT id FROM (SELECT id FROM c) WHERE id > 1"), {"c"}, "_op"
    )
    assert rewritten is not None
    assert rewritten.sql == (
        f"SELECT id, {PASSES} FROM (SELECT id, `c`.`_op` AS `_op` FROM c) {WHERE}"
    ).replace("`c`.`_op`", "`_op`").replace("`_op` AS `_op` FROM c", "`c`.`_op` AS `_op` FROM c")


@pytest.mark.parametrize("complete", [False, True])
def test_a_condition_on_the_current_time_deletes_the_row_before(complete: bool) -> None:
    sql = parse_facts("SELECT id FROM c WHERE at > current_timestamp()")
    rewritten = rewrite_for_changes(sql, {"c"}, "_op", complete=complete)
    assert rewritten is not None and rewritten.sql.endswith("(NOT `c`.`_op` IN ('i'), TRUE)")


@pytest.mark.parametrize(
    ("sql", "chance"),
    [
        ("SELECT id FROM c WHERE rand() > 1", True),
        ("WITH k AS (SELECT * FROM c WHERE id > uniform(1, 2)) SELECT id FROM k", True),
        ("SELECT rand() AS r FROM c WHERE id > 1", False),
        ("SELECT id FROM c WHERE at > current_timestamp()", False),
    ],
)
def test_conditions_of_chance(sql: str, chance: bool) -> None:
    assert filters_by_chance(parse_facts(sql)) is chance


def test_a_condition_drops_complete_changes() -> None:
    sql = parse_facts("SELECT id FROM c WHERE id > 1")
    rewritten = rewrite_for_changes(sql, {"c"}, "_op", complete=True)
    assert rewritten is not None
    assert rewritten.sql == "SELECT id, `c`.`_op` AS `_op` FROM c WHERE id > 1"


def test_the_operation_is_the_last_name() -> None:
    with pytest.raises(PlanError, match="as the last column"):
        rewrite_for_changes(parse_facts("SELECT a FROM c AS c(_op, a)"), {"c"}, "_op")
