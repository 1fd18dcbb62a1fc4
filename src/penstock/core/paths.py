"""Text of a pipeline file that knows where it was written, and the paths made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator


class Text(str):
    """A string of a pipeline file that knows the directory of its file.

    The `repr` of a secret shows asterisks; the string itself is the secret.
    """

    base: Path | None
    secret: bool

    def __new__(cls, value: str, base: Path | None = None, secret: bool = False) -> Text:
        text = super().__new__(cls, value)
        text.base = base
        text.secret = secret
        return text

    def __repr__(self) -> str:
        return "'**********'" if self.secret else super().__repr__()

    def __reduce__(self) -> tuple[Any, ...]:
        return Text, (str(self), self.base, self.secret)


def resolve(value: object) -> object:
    """A relative path made absolute by the directory of its file; anything else as it is."""
    if not isinstance(value, str) or "://" in value or value.startswith("/"):
        return value
    if value.startswith("~"):
        return str(Path(value).expanduser())
    base = getattr(value, "base", None) or Path.cwd()
    return str(base / value)


UserPath = Annotated[str, BeforeValidator(resolve)]
"""A path or URL; a relative path is relative to the file that says it."""
