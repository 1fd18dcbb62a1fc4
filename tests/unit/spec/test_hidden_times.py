"""The event time that Arroyo adds to rows reaches windows, and no sink."""

from __future__ import annotations

import pytest

from penstock import app

TABLES = """
CREATE TABLE k (id BIGINT, name TEXT) WITH (
    connector = 'kafka', bootstrap_servers = 'k:9092', topic = 'in', type = 'source',
    format = 'json');
CREATE TABLE f (id BIGINT) WITH (connector = 'files', path = 'f', format = 'json');
CREATE VIEW v AS SELECT k.* FROM k WHERE id > 1;
CREATE VIEW named AS SELECT id, name, _timestamp FROM k;
CREATE VIEW counted AS SELECT count(*) AS n, tumble(INTERVAL '1 minute') AS w FROM k GROUP BY 2;
"""
WINDOW = "SELECT count(*) AS n FROM v GROUP BY tumble(INTERVAL '1 minute');"


def sql_of(query: str, others: str = WINDOW) -> str:
    partial, errors = app.script_plan(f"{TABLES}{query};{others}")
    assert partial is not None and not errors
    return str(partial.plan.spec.transforms["result_query"].options["sql"])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM k", "SELECT * EXCEPT (_timestamp) FROM k"),
        ("SELECT v.*, 1 AS one FROM v", "SELECT v.* EXCEPT (_timestamp), 1 AS one FROM v"),
        ("SELECT * EXCEPT (id) FROM v", "SELECT * EXCEPT (id, _timestamp) FROM v"),
        ("SELECT * EXCLUDE (id) FROM v", "SELECT * EXCLUDE (id, _timestamp) FROM v"),
        ("SELECT v.* EXCLUDE id FROM v", "SELECT v.* EXCLUDE (id, _timestamp) FROM v"),
        (
            "WITH c AS (SELECT * FROM v) SELECT * FROM c UNION ALL SELECT * FROM (SELECT * FROM k)",
            "WITH c AS (SELECT * FROM v) SELECT * EXCEPT (_timestamp) FROM c "
            "UNION ALL SELECT * EXCEPT (_timestamp) FROM (SELECT * FROM k)",
        ),
        (
            "SELECT * FROM k AS a JOIN v ON a.id = v.id JOIN f ON f.id = a.id",
            "SELECT a.* EXCEPT (_timestamp), v.* EXCEPT (_timestamp), f.* "
            "FROM k AS a JOIN v ON a.id = v.id JOIN f ON f.id = a.id",
        ),
        (
            "SELECT * FROM k AS `a b` JOIN v ON `a b`.id = v.id",
            "SELECT `a b`.* EXCEPT (_timestamp), v.* EXCEPT (_timestamp) "
            "FROM k AS `a b` JOIN v ON `a b`.id = v.id",
        ),
        ("SELECT * FROM f", "SELECT * FROM f"),
        ("SELECT * FROM named", "SELECT * FROM named"),
        ("SELECT * FROM counted", "SELECT * FROM counted"),
        ("SELECT count(*) AS n FROM k", "SELECT count(*) AS n FROM k"),
        ("SELECT id * 2 AS twice FROM k", "SELECT id * 2L AS twice FROM k"),
    ],
)
def test_star_leaves_the_hidden_time_out(query: str, expected: str) -> None:
    assert sql_of(query) == expected


def test_rows_without_windows_have_no_hidden_time() -> None:
    partial, errors = app.script_plan(f"{TABLES.split('CREATE VIEW')[0]}SELECT * FROM k")
    assert partial is not None and not errors
    assert partial.plan.spec.transforms["result_query"].options["sql"] == "SELECT * FROM k"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM k", "* EXCEPT (_timestamp), row_time()"),
        ("SELECT id FROM k", "*, row_time()"),
        (
            "SELECT id FROM k GROUP BY id, tumble(INTERVAL '1 minute')",
            "* EXCEPT (_window), _window.end - INTERVAL '1' MICROSECOND",
        ),
    ],
)
def test_directories_have_a_column_of_their_own(query: str, expected: str) -> None:
    partial, errors = app.script_plan(
        f"{TABLES}CREATE TABLE lake WITH (connector = 'filesystem', path = 'o', type = 'sink', "
        f"format = 'json', 'partitioning.time_pattern' = '%Y');INSERT INTO lake {query};"
    )
    assert partial is not None and not errors
    sql = partial.plan.spec.transforms["lake_times"].options["sql"]
    assert sql == f"SELECT {expected} AS _partition_time FROM `lake_query`"


def test_a_view_that_names_its_columns() -> None:
    partial, errors = app.script_plan(
        f'{TABLES}CREATE VIEW renamed (key, "the text") AS SELECT * FROM k;'
        f"SELECT * FROM renamed;{WINDOW}"
    )
    assert partial is not None and not errors
    transforms = partial.plan.spec.transforms
    assert transforms["renamed_query"].options["sql"] == "SELECT * EXCEPT (_timestamp) FROM k"
    assert transforms["renamed"].options["sql"] == (
        "SELECT * FROM `renamed_query` AS `renamed_query`(`key`, `the text`)"
    )
    assert transforms["result_query"].options["sql"] == "SELECT * FROM renamed"


def test_distinct_rows_without_the_hidden_time_are_an_updating_result() -> None:
    partial, errors = app.script_plan(f"{TABLES}SELECT DISTINCT * FROM k;{WINDOW}")
    assert partial is not None and not errors
    assert partial.plan.nodes["result_query"].updating
