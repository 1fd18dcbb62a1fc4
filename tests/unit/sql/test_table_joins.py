"""Tables whose rows a query keeps beside those of a stream."""

from __future__ import annotations

import pytest

from penstock.sql.facts import parse_facts
from penstock.sql.table_joins import keeps_constant_rows, keeps_table_rows, merges_table_rows

VALUES = "(VALUES (1), (2)) v(k)"


@pytest.mark.parametrize(
    ("sql", "joins", "merges", "constants"),
    [
        ("SELECT * FROM s LEFT JOIN t USING (k)", False, False, False),
        ("SELECT * FROM t LEFT JOIN s USING (k)", True, False, False),
        ("SELECT * FROM s FULL JOIN t USING (k)", True, False, False),
        ("SELECT * FROM t FULL JOIN s USING (k)", True, False, False),
        ("SELECT * FROM t RIGHT JOIN s USING (k)", False, False, False),
        ("SELECT * FROM t LEFT ANTI JOIN s USING (k)", True, False, False),
        ("SELECT k FROM s UNION ALL SELECT k FROM t", False, True, False),
        ("SELECT k FROM s UNION ALL SELECT k FROM s", False, False, False),
        ("SELECT k FROM t UNION ALL SELECT k FROM t", False, False, False),
        (f"SELECT * FROM s JOIN {VALUES} USING (k)", False, False, False),
        (f"SELECT * FROM {VALUES} LEFT JOIN s USING (k)", False, False, True),
        ("SELECT * FROM s RIGHT JOIN range(3) r(k) USING (k)", False, False, True),
        ("SELECT 1 AS k UNION ALL SELECT k FROM s", False, False, True),
        ("WITH v AS (SELECT 1 AS k) SELECT k FROM v UNION SELECT k FROM s", False, False, True),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) "
            "SELECT n FROM r LEFT JOIN s ON k = n",
            False, False, True,
        ),
    ],
)  # fmt: skip
def test_kept_rows(sql: str, joins: bool, merges: bool, constants: bool) -> None:
    facts, streams = parse_facts(sql), frozenset({"s"})
    assert keeps_table_rows(facts, streams) is joins
    assert merges_table_rows(facts, streams) is merges
    assert keeps_constant_rows(facts, streams) is constants
