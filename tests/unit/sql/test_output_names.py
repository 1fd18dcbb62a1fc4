"""Names of outputs in SQL: `FROM router.large` is one relation of Spark."""

from __future__ import annotations

import pytest

from penstock.sql.dialect.outputs import with_outputs
from penstock.sql.dialect.translate import translate
from penstock.sql.facts import parse_facts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT r.a FROM r.x", "SELECT r.a FROM `r.x` AS `x`"),
        ("SELECT * FROM r.x AS t WHERE t.a > 1", "SELECT * FROM `r.x` AS t WHERE t.a > 1"),
        ("SELECT * FROM r.x t, r.y", "SELECT * FROM `r.x` t, `r.y` AS `y`"),
        (
            "WITH c AS (SELECT * FROM r.x) SELECT * FROM c JOIN r.y ON c.a = y.a",
            "WITH c AS (SELECT * FROM `r.x` AS `x`) SELECT * FROM c JOIN `r.y` AS `y` ON c.a = y.a",
        ),
        (
            "SELECT * FROM a WHERE a.id IN (SELECT id FROM r.`x`)",
            "SELECT * FROM a WHERE a.id IN (SELECT id FROM `r.x` AS `x`)",
        ),
        (
            "SELECT * FROM (SELECT * FROM r.x) UNION ALL SELECT * FROM r.y",
            "SELECT * FROM (SELECT * FROM `r.x` AS `x`) UNION ALL SELECT * FROM `r.y` AS `y`",
        ),
        ("SELECT 'FROM r.x', a.b FROM `r.x`", None),
        ("a.b > 1", None),
        ("SELECT 'open", None),
    ],
)
def test_names_of_outputs_are_quoted(text: str, expected: str | None) -> None:
    assert translate(text).text == with_outputs(text) == (expected or text)


def test_facts_have_the_names_of_outputs() -> None:
    facts = parse_facts(with_outputs("SELECT * FROM Router.Large JOIN orders"))
    known = frozenset({"router.large", "router.other", "orders"})
    assert facts.relations(known) == {"router.large", "orders"}
