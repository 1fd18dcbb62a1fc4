"""The errors Penstock raises, and what each class means for a run.

PenstockError
├── UserError            the user's files are wrong; nothing was started
│   ├── SpecError        the shape of a pipeline file
│   ├── SqlError         a SQL text
│   ├── PlanError        names, options and types that do not fit together
│   │   └── OptionError  one option of a component
│   └── MissingExtra     a client library is not installed
├── ConnectError         the outside world
│   ├── Transient        "could not ...": worth another try
│   └── Permanent        "cannot ...": the same try fails again
├── RecordError          one record, which goes to the dead letters
│   ├── DecodeError
│   ├── EncodeError
│   └── Rejected
├── StateError           the state directory, or state that does not fit the plan
└── Bug                  ours
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.core.location import Location


@dataclass(frozen=True)
class Conduct:
    """What a class of errors means for a run."""

    exit_code: int
    retried: bool
    stops_query: bool
    log_level: str
    http_status: int


class PenstockError(Exception):
    """Base of all errors that a user is meant to read.

    `code` is stable and machine readable; `message` is one line; `detail` may be long (an
    outside system's own words); `hint` says what to do; `where` points into the user's file.
    """

    default_code: ClassVar[str] = "error"
    conduct: ClassVar[Conduct] = Conduct(1, False, True, "error", 500)

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
        where: Location | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.detail = detail
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        return encode(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self).__name__, _fields(self), self.where)


class UserError(PenstockError):
    default_code = "user-error"
    conduct = Conduct(2, False, True, "error", 400)


class SpecError(UserError):
    default_code = "invalid-file"


class SqlError(UserError):
    default_code = "invalid-sql"


class PlanError(UserError):
    default_code = "invalid-plan"


class OptionError(PlanError):
    """A mistake in one of a component's options, which is shown where the option stands."""

    default_code = "invalid-option"
    option: tuple[str | int, ...] = ()
    at: tuple[int, int] | None = None

    @classmethod
    def of(
        cls,
        *option: str | int,
        message: str,
        code: str | None = None,
        hint: str | None = None,
        at: tuple[int, int] | None = None,
    ) -> OptionError:
        """`option` leads to a value: an option's name, then keys and indexes inside it.

        `at` is a line and a column, both from 1, within the value's text; the whole value if
        left out.
        """
        error = cls(message, code=code, hint=hint)
        error.option, error.at = option, at
        return error


class MissingExtra(UserError):
    default_code = "missing-extra"

    @classmethod
    def of(cls, extra: str, library: str) -> MissingExtra:
        return cls(
            f"the Python package {library} is not installed",
            hint=f"pip install 'penstock[{extra}]'",
        )


class ConnectError(PenstockError):
    default_code = "connect"
    conduct = Conduct(3, False, True, "error", 502)


class Transient(ConnectError):
    default_code = "unavailable"
    conduct = Conduct(3, True, True, "warning", 503)


class Permanent(ConnectError):
    default_code = "refused"


class RecordError(PenstockError):
    default_code = "bad-record"
    conduct = Conduct(1, False, False, "warning", 422)


class DecodeError(RecordError):
    default_code = "undecodable"


class EncodeError(RecordError):
    default_code = "unencodable"


class Rejected(RecordError):
    default_code = "rejected"


class StateError(PenstockError):
    default_code = "state"
    conduct = Conduct(4, False, True, "error", 409)


class Bug(PenstockError):
    default_code = "bug"
    conduct = Conduct(1, False, True, "critical", 500)


class Mistakes(UserError):
    """Several errors of the user's files, told in one go."""

    default_code = "mistakes"

    def __init__(self, errors: Sequence[PenstockError]) -> None:
        count = len(errors)
        super().__init__(f"{count} mistake{'s' if count != 1 else ''}")
        self.errors = tuple(sorted(errors, key=_position))

    def __reduce__(self) -> tuple[Any, ...]:
        return Mistakes, (self.errors,)


def _position(error: PenstockError) -> tuple[str, int, int]:
    where = error.where
    return (where.file, where.line, where.column) if where else ("", 0, 0)


def each_of(error: PenstockError) -> Sequence[PenstockError]:
    """The error itself, or those that `Mistakes` holds."""
    return error.errors if isinstance(error, Mistakes) else (error,)


def raise_all(errors: Iterable[PenstockError]) -> None:
    """Raises the one error, or `Mistakes` of several; returns when there is none."""
    found: list[PenstockError] = []
    for error in errors:
        found.extend(each_of(error))
    if len(found) == 1:
        raise found[0]
    if found:
        raise Mistakes(found)


# Exception types do not cross the JVM: an error's text carries the error itself.
_MARK = "penstock:"
_CARRIED = re.compile(re.escape(_MARK) + r"(\{.*\})", re.MULTILINE)


def _fields(error: PenstockError) -> dict[str, str | None]:
    return {
        "message": error.message,
        "code": error.code,
        "detail": error.detail,
        "hint": error.hint,
    }


def encode(error: PenstockError) -> str:
    """The error as one line of text that `decode` reads back, even inside a foreign traceback."""
    fields = {"class": type(error).__name__, **_fields(error)}
    return _MARK + json.dumps({k: v for k, v in fields.items() if v is not None})


def decode(text: str) -> PenstockError | None:
    """The last error carried by `text`, if it carries any."""
    for match in reversed(_CARRIED.findall(text)):
        try:
            fields = json.loads(match)
        except ValueError:
            continue
        return _restore(fields.pop("class", "PenstockError"), fields, None)
    return None


def _restore(name: str, fields: dict[str, Any], where: Location | None) -> PenstockError:
    known = {kind.__name__: kind for kind in _subclasses(PenstockError) if kind is not Mistakes}
    kind = known.get(name, PenstockError)
    message = fields.get("message") or ""
    extras = {k: fields.get(k) for k in ("code", "detail", "hint")}
    return kind(message, where=where, **extras)


def _subclasses(kind: type[PenstockError]) -> Iterable[type[PenstockError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _subclasses(child)


def facts(error: PenstockError) -> list[dict[str, str | int | None]]:
    """The errors of `error` for programs: its code, texts and place."""
    if isinstance(error, Mistakes):
        return [each for inner in error.errors for each in facts(inner)]
    where = error.where
    place: dict[str, str | int | None] = {"file": None, "line": None, "column": None}
    if where is not None:
        place = {"file": where.file, "line": where.line, "column": where.column}
    return [{**_fields(error), **place}]


def report(error: BaseException) -> str:
    """The error as a user reads it: what, where with the line itself, why, what to do."""
    if isinstance(error, Mistakes):
        return "\n\n".join(report(each) for each in error.errors)
    if not isinstance(error, PenstockError):
        return f"error[bug]: {type(error).__name__}: {error}"
    lines = [f"error[{error.code}]: {error.message}"]
    if error.where is not None:
        lines += error.where.excerpt(error.hint)
    elif error.hint:
        lines.append(f"  hint: {error.hint}")
    if error.detail:
        lines += [f"  {line}" for line in error.detail.strip().splitlines()]
    return "\n".join(lines)
