"""State files: small JSON files in the state directory of a node."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.core.files.durable import rename_durably
from penstock.core.files.private_files import open_private


class JsonStateFile:
    """A JSON object in a file, replaced atomically with fsync.

    `key` identifies the subject of the state, such as a URL. State of another subject is ignored.
    """

    def __init__(self, path: Path, *key: str) -> None:
        self._path = path
        self._key = hashlib.sha256("\0".join(key).encode()).hexdigest()

    def load(self) -> dict[str, Any]:
        """Returns the last saved state; empty without a saved state."""
        try:
            entry = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        return dict(entry["state"]) if entry["key"] == self._key else {}

    def save(self, state: Mapping[str, Any]) -> None:
        """Replaces the saved state."""
        temporary = self._path.with_name(f".{self._path.name}")
        with open_private(temporary, "w") as file:
            json.dump({"key": self._key, "state": dict(state)}, file)
        rename_durably(temporary, self._path)
