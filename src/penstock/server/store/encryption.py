"""Encryption of the secrets of the store. The keys are outside of the database.

The keys come from the variable `PENSTOCK_KEYS`, from the output of a command such as that of a key
management service, or else from a file in the data directory, which the server creates. The first
key encrypts, and all of them decrypt.
"""

from __future__ import annotations

import json
import shlex
import stat
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from penstock.core.errors import StateError, UserError
from penstock.core.files.durable import replace_durably
from penstock.core.known_secrets import remember_secret

FILE = "keys"
VARIABLE = "PENSTOCK_KEYS"
COMMAND_SECONDS = 30


class Encryption:
    """The keys of a store. `file` is None for keys from elsewhere. Safe for several threads."""

    def __init__(self, keys: Sequence[str], file: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._set(keys)
        self.file = file

    @classmethod
    def load(
        cls, data: Path, environment: Mapping[str, str], command: str | None = None
    ) -> Encryption:
        """Returns the keys of a server, and creates the first one in a file.

        Raises UserError for invalid keys, a command that fails, and a file that others can read.
        """
        if command is not None:
            return cls(_output_of(command).split())
        if environment.get(VARIABLE, "").strip():
            return cls(environment[VARIABLE].replace(",", " ").split())
        file = data / FILE
        if not file.exists():
            _write(file, [Fernet.generate_key().decode()])
        mode = stat.S_IMODE(file.stat().st_mode)
        if mode & 0o077:
            raise UserError(
                f"other users can read the keys of the server in {file}", code="open-keys",
                hint=f"Run chmod 600 {shlex.quote(str(file))}, and rotate the keys.",
            )  # fmt: skip
        return cls(file.read_text("utf-8", "replace").split(), file)

    def encrypt(self, value: Any) -> str:
        """Returns a value of JSON as an encrypted text."""
        return self._keys.encrypt(json.dumps(value).encode()).decode()

    def decrypt(self, text: str) -> Any:
        """Returns the value of an encrypted text. Raises StateError without its key."""
        try:
            return json.loads(self._keys.decrypt(text.encode()))
        except InvalidToken:
            raise StateError(
                "no key of the server decrypts its secrets", code="wrong-secret-key",
                hint=f"Restore the file {FILE} of the data directory, or the earlier {VARIABLE}. "
                "Otherwise delete the connections with secrets.",
            ) from None  # fmt: skip

    def begin_rotation(self) -> None:
        """Adds a new key to the file, in front of the others. Keys from elsewhere remain."""
        with self._lock:
            if self.file is not None:
                self._set([Fernet.generate_key().decode(), *self._texts])
                _write(self.file, self._texts)

    def end_rotation(self) -> None:
        """Removes all keys of the file but the first one, which now encrypts all secrets."""
        with self._lock:
            if self.file is not None:
                self._set(self._texts[:1])
                _write(self.file, self._texts)

    def _set(self, keys: Sequence[str]) -> None:
        try:
            self._keys = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise UserError(
                "the keys of the server are invalid", code="invalid-keys",
                hint="Expected 32 bytes in URL-safe base64 for each key, separated by spaces.",
            ) from None  # fmt: skip
        self._texts = list(keys)
        for key in keys:
            remember_secret(key)


def _write(file: Path, keys: Sequence[str]) -> None:
    replace_durably(file, "".join(f"{key}\n" for key in keys))


def _output_of(command: str) -> str:
    try:
        answer = subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=COMMAND_SECONDS,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no output within {COMMAND_SECONDS} s"
        raise _no_keys(reason) from None
    if answer.returncode:
        raise _no_keys(f"exit code {answer.returncode}")
    return answer.stdout


def _no_keys(reason: str) -> UserError:
    return UserError(
        f"the command of --key-command failed: {reason}", code="invalid-keys",
        hint="Run the command by hand. Its output must be the keys.",
    )  # fmt: skip
