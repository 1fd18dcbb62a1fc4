"""How a case went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.errors import PenstockError, UserError, each_of
from penstock.spec.models import ExpectedDeadLetter, ExpectedError
from penstock.testing.difference import Difference, Row, matching

if TYPE_CHECKING:
    from penstock.testing.case import Case


@dataclass(frozen=True)
class Letters:
    """Dead letters that a case expects and did not get, and those that it did not expect."""

    missing: tuple[int, ...] = ()
    unexpected: tuple[Row, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)


@dataclass(frozen=True)
class Result:
    """What a case found. `error` is one that was not expected, or that took another's place."""

    case: Case
    seconds: float
    differences: Mapping[str, Difference]
    letters: Letters = Letters()
    error: PenstockError | None = None
    no_error: bool = False
    """An error was expected, and none came."""

    @property
    def passed(self) -> bool:
        return not (any(self.differences.values()) or self.letters or self.error or self.no_error)

    @property
    def mistaken(self) -> bool:
        """Whether the files are wrong, not what the pipeline does with the rows."""
        return isinstance(self.error, UserError)


def compare_letters(expected: Sequence[ExpectedDeadLetter], got: Sequence[Row]) -> Letters:
    """The difference between the dead letters of a case and those that came."""
    pairs = matching(expected, got, _is_letter)
    missing = tuple(at for at in range(len(expected)) if at not in pairs)
    matched = set(pairs.values())
    return Letters(missing, tuple(row for at, row in enumerate(got) if at not in matched))


def is_error(expected: ExpectedError, got: PenstockError) -> bool:
    """Whether an error is the one that a case expects, also as one of several mistakes."""
    return any(
        expected.code in (None, each.code) and (expected.message or "") in each.message
        for each in each_of(got)
    )


def _is_letter(expected: ExpectedDeadLetter, got: Row) -> bool:
    return (
        expected.node in (None, got["node"])
        and expected.code in (None, got["code"])
        and (expected.message or "") in got["message"]
        and (expected.payload or "") in payload_text(got)
    )


def payload_text(letter: Row) -> str:
    """A dead letter's payload as far as it is text."""
    return (letter["payload"] or b"").decode(errors="backslashreplace")
