"""Result of a test case, and comparison of dead letters and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.core.errors import PenstockError, UserError, flatten_errors
from penstock.spec.case_models import ExpectedDeadLetter, ExpectedError
from penstock.testing.case_definition import CaseDefinition
from penstock.testing.difference import Difference, Row, match_rows


@dataclass(frozen=True)
class DeadLetterDifference:
    """A difference between dead letters. `missing` holds indexes of the expected dead letters."""

    missing: tuple[int, ...] = ()
    unexpected: tuple[Row, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)


@dataclass(frozen=True)
class Result:
    """The result of a test case. `error` is an unexpected error."""

    case: CaseDefinition
    seconds: float
    differences: Mapping[str, Difference]
    dead_letters: DeadLetterDifference = DeadLetterDifference()
    error: PenstockError | None = None
    error_missing: bool = False
    """Whether the case expected an error and the pipeline ended without an error."""

    @property
    def passed(self) -> bool:
        different = any(self.differences.values()) or self.dead_letters
        return not (different or self.error or self.error_missing)

    @property
    def has_user_error(self) -> bool:
        """Whether the case failed with an error of the user's files."""
        return isinstance(self.error, UserError)


def compare_dead_letters(
    expected: Sequence[ExpectedDeadLetter], actual: Sequence[Row]
) -> DeadLetterDifference:
    """Returns the difference, regardless of order."""
    pairs = match_rows(expected, actual, _matches_dead_letter)
    missing = tuple(index for index in range(len(expected)) if index not in pairs)
    matched = set(pairs.values())
    unexpected = tuple(row for index, row in enumerate(actual) if index not in matched)
    return DeadLetterDifference(missing, unexpected)


def matches_error(expected: ExpectedError, actual: PenstockError) -> bool:
    """Returns whether `actual`, or one of the errors in it, is the expected error."""
    return any(
        expected.code in (None, error.code) and (expected.message or "") in error.message
        for error in flatten_errors(actual)
    )


def payload_text(dead_letter: Row) -> str:
    """Returns the payload of a dead letter as text, with invalid UTF-8 escaped."""
    return (dead_letter["payload"] or b"").decode(errors="backslashreplace")


def _matches_dead_letter(expected: ExpectedDeadLetter, actual: Row) -> bool:
    return (
        expected.node in (None, actual["node"])
        and expected.code in (None, actual["code"])
        and (expected.message or "") in actual["message"]
        and (expected.payload or "") in payload_text(actual)
    )
