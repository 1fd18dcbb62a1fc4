"""Strings of pipeline files, and paths relative to the file: in options and in the state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator


class ConfigStr(str):
    """A string of a pipeline file, with the directory of the file.

    The `repr` of a secret is asterisks; the string itself is the secret.
    """

    base: Path | None
    secret: bool

    def __new__(cls, value: str, base: Path | None = None, secret: bool = False) -> ConfigStr:
        text = super().__new__(cls, value)
        text.base = base
        text.secret = secret
        return text

    def __repr__(self) -> str:
        return "'**********'" if self.secret else super().__repr__()

    def __reduce__(self) -> tuple[Any, ...]:
        return ConfigStr, (str(self), self.base, self.secret)


def resolve(value: object) -> object:
    """Returns a relative path as an absolute path, from the directory of its file."""
    if not isinstance(value, str) or "://" in value or value.startswith("/"):
        return value
    if value.startswith("~"):
        return str(Path(value).expanduser())
    base = getattr(value, "base", None) or Path.cwd()
    return str(base / value)


class Project:
    """The directory of a pipeline file. The state has paths below the directory relative to it.

    Paths with symbolic links to the directory are also below it. The default, the root directory,
    is for programs without a pipeline file.
    """

    def __init__(self, directory: Path = Path("/")) -> None:
        self._prefixes = [f"{str(path).rstrip('/')}/" for path in (directory, directory.resolve())]

    def relative(self, path: str) -> str:
        """Returns a path as relative if it is below the directory, otherwise unchanged."""
        for prefix in self._prefixes:
            if path.startswith(prefix):
                return path[len(prefix) :] or "."
            if f"{path}/" == prefix:
                return "."
        return path

    def absolute(self, path: str) -> str:
        """Returns the path or URL of a path that `relative` has returned."""
        if "://" in path or path.startswith("/"):
            return path
        return f"{self._prefixes[0]}{path}"


UserPath = Annotated[str, BeforeValidator(resolve)]
"""A path or URL; a relative path is relative to the file that contains it."""
