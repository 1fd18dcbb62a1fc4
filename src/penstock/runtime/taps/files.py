"""Files of taps in the state directory: a directory for each tap.

taps/ID/request.json   the node and the rows of a batch; its time is that of the last sign of life
taps/ID/NUMBER.json    an answer: rows of a batch, or an error; the listener removes it
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.core.files.private_files import create_directory, open_private
from penstock.core.known_secrets import conceal

DIRECTORY = "taps"
REQUEST = "request.json"
MAX_ROWS = 1000
"""The rows of a batch that a tap copies at most."""
SILENCE_SECONDS = 10.0
"""The time without a sign of life after which a tap has ended."""
MAX_ANSWERS = 20
"""The answers of a tap that wait for its listener; the rows of further batches are skipped."""


@dataclass(frozen=True)
class TapRequest:
    """A request for at most `rows` rows of a node from each batch."""

    node: str
    rows: int


@dataclass(frozen=True)
class TapDirectory:
    """The directory of one tap."""

    path: Path

    @classmethod
    def create(cls, state: Path, request: TapRequest) -> TapDirectory:
        """Creates the directory of a new tap. Raises OSError."""
        path = state / DIRECTORY / uuid4().hex
        create_directory(path)
        _write(path / REQUEST, asdict(request))
        return cls(path)

    @classmethod
    def all(cls, state: Path) -> list[TapDirectory]:
        """Returns the directories of all taps."""
        try:
            with os.scandir(state / DIRECTORY) as found:
                return [
                    cls(Path(each.path)) for each in found if each.is_dir(follow_symlinks=False)
                ]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def request(self) -> TapRequest | None:
        """Returns the request; None while it is written, and for an invalid one."""
        try:
            facts = json.loads((self.path / REQUEST).read_text())
            return TapRequest(str(facts["node"]), int(facts["rows"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def touch(self) -> None:
        """Gives a sign of life. Raises FileNotFoundError if the run has removed the tap."""
        os.utime(self.path / REQUEST)

    def silent(self) -> bool:
        """Returns whether the listener has given no sign of life for a while."""
        try:
            changed = (self.path / REQUEST).stat().st_mtime
        except OSError:
            changed = self.path.stat().st_mtime if self.path.exists() else 0.0
        return time.time() - changed > SILENCE_SECONDS

    def answer(self, number: int, content: dict[str, Any]) -> bool:
        """Writes an answer. Returns whether there was a place for it. Raises OSError."""
        if len(list(self._answers())) >= MAX_ANSWERS:
            return False
        _write(self.path / f"{number}.json", content)
        return True

    def take(self) -> list[dict[str, Any]]:
        """Returns the answers in their order, and removes them."""
        found = []
        for file in sorted(self._answers(), key=lambda each: int(each.stem)):
            with suppress(OSError, ValueError):
                found.append(json.loads(file.read_text()))
            file.unlink(missing_ok=True)
        return found

    def remove(self) -> None:
        """Ends the tap."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _answers(self) -> Iterator[Path]:
        return (file for file in self.path.glob("*.json") if file.stem.isdigit())


def _write(path: Path, content: dict[str, Any]) -> None:
    """Replaces a file atomically, without fsync: taps do not survive a crash."""
    hidden = path.with_name(f".{path.name}")
    with open_private(hidden, "w") as file:
        file.write(conceal(json.dumps(content)))
    hidden.replace(path)
