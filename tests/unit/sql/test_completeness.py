"""Queries whose rows no watermark completes."""

from __future__ import annotations

import pytest

from penstock.sql.completeness import needs_whole_input, selected_times, time_columns
from penstock.sql.facts import parse_facts

WINDOWED = "SELECT window.start AS start, k, count(*) AS n FROM a GROUP BY window(at, '1 h'), k"
GROUPED = "SELECT k, sum(y) AS t FROM b GROUP BY k"
COMPLETED = [
    WINDOWED,
    "SELECT at, count(*) FROM a GROUP BY at",
    "SELECT k, at AS t, count(*) FROM a GROUP BY 1, 2",
    "SELECT count(*), at FROM a GROUP BY 2",
    "SELECT 1 FROM fixed RIGHT JOIN a USING (k)",
    f"SELECT start, sum(n) FROM ({WINDOWED}) w GROUP BY start",
    f"WITH w AS ({WINDOWED}) SELECT * FROM w LEFT JOIN ({WINDOWED}) v ON w.start = v.start",
    "SELECT 1 FROM a LEFT JOIN b ON a.k = b.k AND a.at BETWEEN b.at AND b.at + INTERVAL 1 HOUR",
    "SELECT 1 FROM a LEFT SEMI JOIN b ON a.at = b.at",
    "SELECT 1 FROM a JOIN b ON a.k = b.k",
    "SELECT 1 FROM a AS x, b WHERE (x.k = b.k AND x.v < b.v)",
    "SELECT 1 FROM a JOIN b ON a.k <=> b.k + 1 NATURAL JOIN a AS c",
    "SELECT 1 FROM a, b, a AS c WHERE a.k = c.k AND b.k = c.k",
    "SELECT 1 FROM a JOIN b ON k = y",
    "SELECT 1 FROM a JOIN fixed ON a.v < fixed.v",
    "SELECT 1 FROM a LEFT JOIN fixed ON a.k = fixed.k",
    "SELECT 1 FROM a WHERE k IN (SELECT k FROM fixed)",
    "SELECT a.k FROM a JOIN (SELECT k, max(v) AS v FROM fixed GROUP BY k) f ON a.k = f.k",
    "SELECT window(at, '1 h').start, count(*) FROM a GROUP BY window(at, '1 h').start",
    "SELECT w.window.end, sum(n) FROM (SELECT window, count(*) AS n FROM a "
    "GROUP BY window(at, '1 h')) w GROUP BY w.window",
    "SELECT t, count(*) FROM (SELECT window_time(window) AS t FROM (SELECT window, count(*) FROM a "
    "GROUP BY window(at, '1 h'))) GROUP BY t",
    "SELECT t, count(*) FROM a AS x (t, k) GROUP BY t",
    "SELECT CAST(at AS TIMESTAMP) AS t, count(*) FROM a GROUP BY t",
    "SELECT k, count(*) FROM a GROUP BY window(at, '1 h'), ROLLUP(k)",
    "SELECT k, count(*) FROM a GROUP BY session_window(at, '5 s'), k",
    "SELECT DISTINCT * FROM a",
    "WITH x (t) AS (SELECT at FROM a) SELECT DISTINCT t FROM x",
    "SELECT 1 FROM a AS x LEFT JOIN b AS y USING (at)",
    "SELECT 1 FROM a LEFT JOIN b ON a.k = b.k AND (a.at >= b.at - INTERVAL 1 HOUR)",
    "SELECT named_struct('start', date_trunc('day', at), 'end', date_trunc('day', at) + "
    "INTERVAL '1' DAY) AS w, count(*) FROM a GROUP BY w",
]
NOT_COMPLETED = [
    "SELECT k, count(*) FROM a GROUP BY k",
    "SELECT count(*) FROM a",
    f"SELECT w.k, n, t FROM ({WINDOWED}) w JOIN ({GROUPED}) q USING (k)",
    f"SELECT k, sum(n) FROM ({WINDOWED}) w GROUP BY k",
    "SELECT 1 FROM a LEFT JOIN b ON a.k = b.k AND b.y > 4",
    "SELECT 1 FROM a FULL JOIN b USING (k)",
    "SELECT 1 FROM a LEFT SEMI JOIN b ON a.k = b.k",
    "SELECT 1 FROM a LEFT ANTI JOIN b ON a.at = b.at",
    "SELECT 1 FROM fixed RIGHT JOIN a USING (k) LEFT JOIN b USING (k)",
    "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.at = b.at)",
    "SELECT 1 FROM a WHERE k NOT IN (SELECT k FROM b)",
    "SELECT 1 FROM a ORDER BY at",
    "SELECT 1 FROM a JOIN b ON a.v < b.v",
    "SELECT 1 FROM a CROSS JOIN b",
    "SELECT 1 FROM a JOIN b ON a.k = b.k OR a.v = b.v",
    "SELECT 1 FROM a JOIN b ON a.v - b.v = 0 WHERE a.k = 1",
    "SELECT 1 FROM a LEFT JOIN b ON b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR WHERE a.k = b.k",
    "SELECT 1 FROM a JOIN b ON a.v < b.v JOIN a AS c ON c.k = a.k AND c.k = b.k",
    "SELECT to_date(from_utc_timestamp(at, 'Europe/Berlin')), count(*) FROM a GROUP BY 1",
    "SELECT to_date(at) AS at, count(*) FROM a GROUP BY 1",
    "SELECT at, count(*) FROM (SELECT to_date(at) AS at FROM a) GROUP BY at",
    "SELECT at + INTERVAL 1 HOUR, count(*) FROM a GROUP BY 1",
    "SELECT coalesce(at, now()) AS t, count(*) FROM a GROUP BY t",
    "SELECT DISTINCT date_format(at, 'HH') FROM a",
    "SELECT DISTINCT * EXCEPT (at) FROM a",
    "SELECT DISTINCT * FROM (SELECT hour(at) AS at FROM a)",
    "SELECT hour(at) FROM a UNION SELECT hour(at) FROM b",
    "SELECT start FROM (SELECT window.start AS start, count(*) FROM a GROUP BY window(at, '1 h')) "
    "UNION SELECT at FROM b",
    "SELECT 1 FROM a LEFT JOIN b ON date_format(a.at, 'HH') = date_format(b.at, 'HH')",
    "SELECT 1 FROM a LEFT SEMI JOIN b ON hour(a.at) = hour(b.at)",
    "SELECT 1 FROM a LEFT JOIN b ON a.k = b.k AND date_trunc('hour', a.at) >= b.at",
    "SELECT size(c), count(*) FROM (SELECT window, collect_list(CASE WHEN v > 1 THEN at END) AS c "
    "FROM a GROUP BY window(at, '1 h')) GROUP BY size(c)",
    "SELECT m, count(*) FROM (SELECT max(at) AS m FROM a GROUP BY window(at, '1 h'), k) GROUP BY m",
    "SELECT window, count(*) FROM a GROUP BY window(from_utc_timestamp(at, 'Asia/Tokyo'), '1 day')",
    "SELECT DISTINCT s.t FROM (SELECT struct(at AS t) AS s FROM a)",
]


def needs(sql: str) -> bool:
    return needs_whole_input(parse_facts(sql), frozenset("ab"), frozenset({"at"}), {}, frozenset())


@pytest.mark.parametrize("sql", COMPLETED)
def test_a_watermark_completes_rows_with_times(sql: str) -> None:
    assert not needs(sql)


@pytest.mark.parametrize("sql", NOT_COMPLETED)
def test_no_watermark_completes_other_rows(sql: str) -> None:
    assert needs(sql)


def test_times_have_names_of_aliases() -> None:
    found = time_columns(parse_facts(f"SELECT start AS hour, n FROM ({WINDOWED}) w"), {"at"}, {})
    assert {"window", "at", "start", "hour"} <= found and not found & {"n", "k"}


def test_values_computed_from_times_are_no_times() -> None:
    facts = parse_facts("SELECT to_date(at) AS at, at AS t, max(at) AS m FROM a GROUP BY ALL")
    assert time_columns(facts, {"at"}, {}) == {"t"}


def test_times_are_selected_by_expressions() -> None:
    items = ["at", "upper(k) AS k", "date_trunc('day', at) AS day", "window.start AS `the start`"]
    assert selected_times(items, {"at", "window"}) == {"at", "the start"}
    assert selected_times(["x +"], {"at"}) == {"at"}


def test_a_semi_join_of_groups_upstream_is_final_at_the_end() -> None:
    facts = parse_facts("SELECT 1 FROM a LEFT SEMI JOIN b ON a.at = b.at")
    streams, times = frozenset("ab"), frozenset({"at"})
    assert not needs_whole_input(facts, streams, times, {}, frozenset())
    assert needs_whole_input(facts, streams, times, {}, frozenset("b"))
