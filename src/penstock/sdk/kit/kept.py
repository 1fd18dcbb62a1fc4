"""What a node remembers beside its messages: how far the system was read, who has asked."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Kept:
    """A small map in a file, replaced as a whole, also when the machine loses power.

    `of` says what it is about, such as the URL: what was kept about something else is not given.
    """

    def __init__(self, path: Path, *of: str) -> None:
        self._path = path
        self._of = hashlib.sha256("\0".join(of).encode()).hexdigest()

    def load(self) -> dict[str, Any]:
        """What was kept last; empty where there is nothing."""
        try:
            found = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        return dict(found["kept"]) if found["of"] == self._of else {}

    def save(self, kept: Mapping[str, Any]) -> None:
        """Keeps these values, instead of the last."""
        hidden = self._path.with_name(f".{self._path.name}")
        with hidden.open("w") as file:
            json.dump({"of": self._of, "kept": dict(kept)}, file)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(self._path)
