"""What several readers of a source need together."""

from __future__ import annotations

from penstock.plan.pushdown import EVERYTHING, Pushdown
from penstock.sdk import Conjunct

CHEAP, SET, TO_A = Conjunct("n", "<", 3), Conjunct("n", "notnull"), Conjunct("s", "=", "a")


def test_columns_are_added_and_conjuncts_shared() -> None:
    one, two = Pushdown(frozenset("n"), (SET, CHEAP, TO_A)), Pushdown(frozenset("s"), (TO_A, SET))
    assert one.union(two) == Pushdown(frozenset("ns"), (SET, TO_A))
    assert one.union(EVERYTHING) == EVERYTHING


def test_nothing_is_said_twice() -> None:
    assert Pushdown(None, (SET, CHEAP, TO_A, CHEAP)).simplify() == Pushdown(None, (CHEAP, TO_A))
    assert Pushdown(None, (SET, TO_A)).simplify() == Pushdown(None, (SET, TO_A))
