"""What several readers of a source need together."""

from __future__ import annotations

from penstock.plan.hint import EVERYTHING, Hint
from penstock.sdk import Conjunct

CHEAP, SET, TO_A = Conjunct("n", "<", 3), Conjunct("n", "notnull"), Conjunct("s", "=", "a")


def test_columns_are_added_and_conjuncts_shared() -> None:
    one, two = Hint(frozenset("n"), (SET, CHEAP, TO_A)), Hint(frozenset("s"), (TO_A, SET))
    assert one.shared(two) == Hint(frozenset("ns"), (SET, TO_A))
    assert one.shared(EVERYTHING) == EVERYTHING


def test_nothing_is_said_twice() -> None:
    assert Hint(None, (SET, CHEAP, TO_A, CHEAP)).terse() == Hint(None, (CHEAP, TO_A))
    assert Hint(None, (SET, TO_A)).terse() == Hint(None, (SET, TO_A))
