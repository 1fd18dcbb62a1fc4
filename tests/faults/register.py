"""Register of planted faults: one changed line each, and the cheapest test that finds it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
REGISTER = Path(__file__).parent / "register"


class RegisterError(Exception):
    """A fault that cannot be planted."""


@dataclass(frozen=True)
class Fault:
    """A fault: `planted` in place of `original`, which occurs once in `file`, below `src/`.

    `test` is a file of tests or a node ID, relative to the checkout.
    """

    name: str
    file: str
    original: str
    planted: str
    test: str

    def plant(self, source: Path) -> None:
        """Plants the fault in a copy of `src/`. Raises RegisterError."""
        path = source / self.file
        path.write_text(self.changed(source), encoding="utf-8")

    def changed(self, source: Path) -> str:
        """Returns the content of the file with the fault. Raises RegisterError."""
        try:
            text = (source / self.file).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise RegisterError(f"{self.name}: {self.file} does not exist") from None
        count = text.count(self.original)
        if count != 1:
            found = f"found {count} times in {self.file}"
            raise RegisterError(f"{self.name}: expected once, {found}: {self.original!r}")
        return text.replace(self.original, self.planted)


def faults() -> Iterator[Fault]:
    """Yields all faults, package by package: the name is `PACKAGE/FAULT`."""
    for path in sorted(REGISTER.glob("*.toml")):
        for name, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
            yield Fault(f"{path.stem}/{name}", **fields)
