"""The exceptions of Penstock, and the policy of each class in a run.

PenstockError
├── UserError                invalid files or options; nothing was started
│   ├── SpecError            invalid syntax or structure of a pipeline file
│   ├── SqlError             invalid SQL
│   ├── PlanError            inconsistent names, options or types
│   │   └── OptionError      invalid option of a component
│   ├── MissingExtra         missing client library
│   └── ValidationErrors     several errors of the user's files
├── ConnectError             failure of an external system
│   ├── Transient            "could not ...": retried
│   └── Permanent            "cannot ...": not retried
├── RecordError              failure of one record, which becomes a dead letter
│   ├── DecodeError
│   ├── EncodeError
│   └── Rejected
├── StateError               unusable state directory, or state incompatible with the plan
├── OutputError              failure of standard output or standard error
│   └── OutputClosed         end of the reader of the output: the command ends without a message
└── Bug                      defect in Penstock
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.core.known_secrets import conceal
from penstock.core.location import Location


@dataclass(frozen=True)
class ErrorPolicy:
    """Effects of a class of errors: exit code, retry, end of the query, log level, HTTP status."""

    exit_code: int
    retried: bool
    stops_query: bool
    log_level: str
    http_status: int


class PenstockError(Exception):
    """Base of all errors reported to the user.

    `code` is stable and machine readable. `message` is one line and is the text of the exception.
    `detail` may be long, such as the text of an external system. `hint` is an instruction.
    `where` is a location in the user's file. The texts have asterisks in place of known secrets.
    `node` is the name of the node whose component has raised the error in a task; None otherwise.
    """

    default_code: ClassVar[str] = "error"
    policy: ErrorPolicy = ErrorPolicy(1, False, True, "error", 500)
    node: str | None = None

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
        where: Location | None = None,
    ) -> None:
        message = conceal(message)
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.detail = conceal(detail) if detail else detail
        self.hint = conceal(hint) if hint else hint
        self.where = where

    def fields(self) -> dict[str, str | None]:
        """Returns the texts of the error: message, code, detail and hint."""
        return {
            "message": self.message,
            "code": self.code,
            "detail": self.detail,
            "hint": self.hint,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_error, (type(self).__name__, self.fields(), self.where)


class UserError(PenstockError):
    default_code = "user-error"
    policy = ErrorPolicy(2, False, True, "error", 400)


class SpecError(UserError):
    default_code = "invalid-file"


class SqlError(UserError):
    default_code = "invalid-sql"


class PlanError(UserError):
    default_code = "invalid-plan"


class OptionError(PlanError):
    """Invalid option of a component, reported at the location of the option."""

    default_code = "invalid-option"
    option: tuple[str | int, ...] = ()
    line_and_column: tuple[int, int] | None = None
    length: int = 1
    of_key: bool = False

    @classmethod
    def of(
        cls,
        *option: str | int,
        message: str,
        code: str | None = None,
        hint: str | None = None,
        line_and_column: tuple[int, int] | None = None,
        length: int = 1,
        of_key: bool = False,
    ) -> OptionError:
        """Returns the error of the value at `option`: an option's name, then keys and indexes.

        `line_and_column` count from 1 within the value's text, of which `length` characters are
        marked. The default is the whole value, with `of_key` the last key in `option`.
        """
        error = cls(message, code=code, hint=hint)
        error.option, error.line_and_column, error.length = option, line_and_column, length
        error.of_key = of_key
        return error

    @classmethod
    def inside(cls, option: str, error: PenstockError) -> OptionError:
        """Returns an error of the value of an option as one of the component."""
        inner = error if isinstance(error, OptionError) else cls("")
        return cls.of(
            option, *inner.option, message=error.message, code=error.code, hint=error.hint,
            line_and_column=inner.line_and_column, length=inner.length,
        )  # fmt: skip


class MissingExtra(UserError):
    default_code = "missing-extra"

    @classmethod
    def of(cls, extra: str, library: str) -> MissingExtra:
        return cls(
            f"the Python package {library} is not installed",
            hint=f"Run pip install 'penstock[{extra}]'.",
        )


class ConnectError(PenstockError):
    default_code = "connect"
    policy = ErrorPolicy(3, False, True, "error", 502)


class Transient(ConnectError):
    default_code = "unavailable"
    policy = ErrorPolicy(3, True, True, "warning", 503)


class Permanent(ConnectError):
    default_code = "rejected"


class RecordError(PenstockError):
    default_code = "bad-record"
    policy = ErrorPolicy(1, False, False, "warning", 422)

    @property
    def reason(self) -> str:
        """The message and the hint in one text, as dead letters have it."""
        return f"{self.message}. {self.hint}" if self.hint else self.message


class DecodeError(RecordError):
    default_code = "undecodable"


class EncodeError(RecordError):
    default_code = "unencodable"


class Rejected(RecordError):
    default_code = "rejected"


class StateError(PenstockError):
    default_code = "state"
    policy = ErrorPolicy(4, False, True, "error", 409)


class OutputError(PenstockError):
    default_code = "output"


class OutputClosed(OutputError):
    default_code = "output-closed"
    policy = ErrorPolicy(141, False, True, "info", 500)


class Bug(PenstockError):
    default_code = "bug"
    policy = ErrorPolicy(1, False, True, "critical", 500)


class ValidationErrors(UserError):
    """Several errors, in the order of their locations.

    Errors with one policy have it together. Others have that of an error of the user's files.
    """

    default_code = "errors"

    def __init__(self, errors: Sequence[PenstockError]) -> None:
        count = len(errors)
        super().__init__(f"{count} error{'s' if count != 1 else ''}")
        self.errors = tuple(sorted(errors, key=_location_key))
        policies = {error.policy for error in errors}
        if len(policies) == 1:
            self.policy = policies.pop()

    def __str__(self) -> str:
        texts = (f"{error.where}: {error}" if error.where else str(error) for error in self.errors)
        return "; ".join([self.message, *texts])

    def __reduce__(self) -> tuple[Any, ...]:
        return ValidationErrors, (self.errors,)


def _location_key(error: PenstockError) -> tuple[str, int, int]:
    where = error.where
    return (where.file, where.line, where.column) if where else ("", 0, 0)


def flatten_errors(error: PenstockError) -> Sequence[PenstockError]:
    """Returns the error itself, or the errors in a `ValidationErrors`."""
    return error.errors if isinstance(error, ValidationErrors) else (error,)


def raise_all(errors: Iterable[PenstockError]) -> None:
    """Raises a single error as it is, and several as `ValidationErrors`."""
    flat = [inner for error in errors for inner in flatten_errors(error)]
    if len(flat) == 1:
        raise flat[0]
    if flat:
        raise ValidationErrors(flat)


def restore_error(
    name: str, fields: Mapping[str, str | None], where: Location | None
) -> PenstockError:
    """Returns the error of the class called `name`, or a PenstockError for an unknown class."""
    classes = {kind.__name__: kind for kind in _subclasses(PenstockError)}
    kind = classes.get(name, PenstockError)
    if kind is ValidationErrors:
        kind = UserError
    extras = {key: fields.get(key) for key in ("code", "detail", "hint")}
    return kind(fields.get("message") or "", where=where, **extras)


def _subclasses(kind: type[PenstockError]) -> Iterable[type[PenstockError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _subclasses(child)
