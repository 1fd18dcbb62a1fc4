"""Where `${secret:provider/name}` gets its text from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path

from penstock.core.text import did_you_mean, nearest

GROUP = "penstock.secrets"
DIRECTORY = "PENSTOCK_SECRETS"
DEFAULT_DIRECTORY = "/run/secrets"

Provider = Callable[[str], str]


class SecretError(Exception):
    """Why a secret cannot be had, and what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def reveal(reference: str, env: Mapping[str, str]) -> str:
    """The secret that `provider/name` refers to. Raises SecretError."""
    provider, slash, name = reference.partition("/")
    if not slash or not name:
        raise SecretError(
            f'"{reference}" names no secret', "write ${secret:file/NAME}: a provider and a name"
        )
    if provider == "file":
        return _from_file(name, Path(env.get(DIRECTORY) or DEFAULT_DIRECTORY))
    found = {each.name: each for each in entry_points(group=GROUP)}
    if provider not in found:
        raise SecretError(
            f'there is no secret provider "{provider}"',
            did_you_mean(provider, ["file", *found]),
        )
    try:
        text = found[provider].load()(name)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise SecretError(f'"{provider}" has no secret "{name}": {reason}') from None
    return str(text)


def _from_file(name: str, directory: Path) -> str:
    """The text of a file in the directory of secrets, without the line end at its end."""
    path = directory / name
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise SecretError(f'"{name}" is not a name below the directory of secrets')
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise _missing(name, path, directory) from None
    except IsADirectoryError:
        raise SecretError(f'the secret "{name}" is a directory', f"in {directory}") from None
    except UnicodeDecodeError:
        raise SecretError(f'the secret "{name}" is not UTF-8 text', f"in {directory}") from None
    except OSError as error:
        raise SecretError(f'cannot read the secret "{name}": {error.strerror}') from None
    return text.removesuffix("\n").removesuffix("\r")


def _missing(name: str, path: Path, directory: Path) -> SecretError:
    message = f'there is no secret "{name}"'
    if not directory.is_dir():
        return SecretError(message, f"{DIRECTORY} names their directory; there is no {directory}")
    beside = path.parent if path.parent.is_dir() else directory
    near = nearest(path.name, (each.name for each in beside.iterdir()))
    return SecretError(message, f'did you mean "{near}"?' if near else f"no such file: {path}")
