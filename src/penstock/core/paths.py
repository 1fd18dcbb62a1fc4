"""Strings of pipeline files, and paths relative to the file: in options and in the state."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SecretStr, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from penstock.core.files.shipped_file import ShippedFile
from penstock.core.path_permission import CODE, permitted_hint, rejected_within, rejection
from penstock.core.permission_errors import not_permitted

_SECRET_NAME = re.compile(r"(?:pass\w*|pwd|secret|token|credentials?|key)$", re.IGNORECASE)


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
    """Returns a relative path as an absolute path, from the directory of its file.

    Raises PydanticCustomError for a path that the server does not permit.
    """
    if not isinstance(value, str):
        return value
    require_permitted(value)
    if "://" in value or value.startswith("/"):
        return value
    if value.startswith("~"):
        return str(Path(value).expanduser())
    return str(_base(value) / value)


def require_permitted(value: object) -> object:
    """Returns a path or URL. Raises PydanticCustomError if the server does not permit it."""
    if isinstance(value, str) and (found := rejection(value, _base(value))) is not None:
        raise not_permitted(found[0], CODE, found[1])
    return value


def check_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns settings of another program. Raises ValidationError at those with other paths.

    Secrets are not searched for paths, and no message has a value.
    """
    named = {
        name: value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        for name, value in settings.items()
        if not _SECRET_NAME.search(name)
    }
    rejected = [name for name, text in named.items() if rejected_within(text)]
    if rejected:
        raise ValidationError.from_exception_data(
            "settings", [InitErrorDetails(type=_setting_error(name), loc=(name,), input="")
                         for name in rejected],
        )  # fmt: skip
    return settings


def _setting_error(name: str) -> PydanticCustomError:
    text = f"the setting {name} has a path outside the directories that the server permits"
    return not_permitted(text, CODE, permitted_hint())


def _base(value: str) -> Path:
    return getattr(value, "base", None) or Path.cwd()


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


LocatedPath = Annotated[str, BeforeValidator(require_permitted)]
"""A path as it is written, which is searched in the working directory and beside the file."""
UserPath = Annotated[str, BeforeValidator(resolve)]
"""A path or URL; a relative path is relative to the file that contains it."""
UserFile = Annotated[UserPath, AfterValidator(ShippedFile)]
"""The path of a file that a component reads, such as a certificate or a schema.

Its content is shipped to the executors of a cluster.
"""
