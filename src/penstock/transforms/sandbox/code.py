"""Code in an option or in a file, and the places of its lines in the user's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import OptionError, PlanError
from penstock.core.location import Location
from penstock.transforms.sandbox.child import CodeError


@dataclass(frozen=True)
class Code:
    """Code with its file, or None for the option `code`, whose lines are at `places`."""

    content: bytes
    file: str | None
    places: Sequence[Location] = ()

    @classmethod
    def read(cls, file: str) -> Code:
        """Reads a file. Raises OptionError."""
        try:
            return cls(Path(file).read_bytes(), file)
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError)
            raise OptionError.of(
                "file", message=f"cannot read the file: {error.strerror or error}",
                code="missing-file" if is_missing else "unreadable-file",
            ) from error  # fmt: skip

    def text(self) -> str:
        """Returns the text of the code. Raises OptionError."""
        try:
            return self.content.decode()
        except UnicodeDecodeError as error:
            raise OptionError.of(
                "file", message="the file is not UTF-8", code="invalid-code"
            ) from error

    def error(self, found: CodeError, label: str) -> PlanError:
        """Returns an error of the code with its place."""
        message = f"{label}: {found.message}"
        lines = self.content.decode(errors="replace").splitlines() or [""]
        line, column = max(found.line, 1), max(found.column, 1)
        if line > len(lines):
            line, column = len(lines), len(lines[-1]) + 1
        if self.file is None:
            place = (line, column) if found.line else None
            return OptionError.of(
                "code", message=message, code="invalid-code", line_and_column=place
            )
        where = Location(self.file, line, column, text=lines[line - 1])
        return PlanError(message, code="invalid-code", where=where)

    def place(self, line: int, column: int) -> str:
        """Returns the place of a line and a column as ` at FILE:LINE:COLUMN`."""
        if not line:
            return ""
        if self.file is not None:
            return f" at {Path(self.file).name}:{line}:{column}"
        if line > len(self.places):
            return f" at line {line} of the code"
        start = self.places[line - 1]
        return f" at {Path(start.file).name}:{start.line}:{start.column + column - 1}"


def code_of(config: Any, places: Sequence[Location]) -> Code:
    """Returns the code of the options `code` or `file`. Raises OptionError."""
    if config.code is not None:
        return Code(str(config.code).encode(), None, places)
    return Code.read(config.file)
