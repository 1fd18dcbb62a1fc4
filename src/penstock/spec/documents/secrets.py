"""Secret providers of `${secret:provider/name}`: a directory, or entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path

from penstock.core.files.pipes import open_without_waiting
from penstock.core.known_secrets import remember_secret
from penstock.core.text import did_you_mean, nearest_file

GROUP = "penstock.secrets"
DIRECTORY = "PENSTOCK_SECRETS"
DEFAULT_DIRECTORY = "/run/secrets"

Provider = Callable[[str], str]


class SecretError(Exception):
    """A secret that cannot be read."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def reveal(reference: str, env: Mapping[str, str]) -> str:
    """Returns the secret of a reference `provider/name`, which messages conceal from now on.

    Raises SecretError.
    """
    secret = _read(reference, env)
    remember_secret(secret)
    return secret


def _read(reference: str, env: Mapping[str, str]) -> str:
    provider, slash, name = reference.partition("/")
    if not slash or not name:
        raise SecretError(
            f'"{reference}" is not a valid reference to a secret', "write ${secret:file/NAME}"
        )
    if provider == "file":
        return _read_file(name, Path(env.get(DIRECTORY) or DEFAULT_DIRECTORY))
    providers = {entry.name: entry for entry in entry_points(group=GROUP)}
    if provider not in providers:
        raise SecretError(
            f'unknown secret provider "{provider}"',
            did_you_mean(provider, ["file", *providers]),
        )
    try:
        text = providers[provider].load()(name)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise SecretError(f'"{provider}" has no secret "{name}": {reason}') from None
    return str(text)


def _read_file(name: str, directory: Path) -> str:
    """Returns the text of a file in the directory of secrets, without its last line end."""
    path = directory / name
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise SecretError(f'"{name}" is outside the directory of secrets')
    try:
        with open_without_waiting(path) as file:
            text = file.read().decode("utf-8")
        if not text and path.is_fifo():
            raise SecretError(
                f'the secret "{name}" is a named pipe without data', f"save {path} as a file"
            )
    except FileNotFoundError:
        raise _missing(name, path, directory) from None
    except IsADirectoryError:
        raise SecretError(f'the secret "{name}" is a directory', f"name a file in {path}") from None
    except UnicodeDecodeError:
        raise SecretError(
            f'the secret "{name}" is not UTF-8 text', f"save {path} as UTF-8"
        ) from None
    except OSError as error:
        raise SecretError(f'cannot read the secret "{name}": {error.strerror}') from None
    return text.removesuffix("\n").removesuffix("\r")


def _missing(name: str, path: Path, directory: Path) -> SecretError:
    message = f'the secret "{name}" does not exist'
    if not directory.is_dir():
        return SecretError(
            message, f"set {DIRECTORY} to the directory of secrets; {directory} does not exist"
        )
    parent = path.parent if path.parent.is_dir() else directory
    nearest_name = nearest_file(path.name, (file.name for file in parent.iterdir()))
    if nearest_name:
        return SecretError(message, f'did you mean "{nearest_name}"?')
    return SecretError(message, f"create the file {path}")
