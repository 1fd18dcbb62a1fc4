"""Locations: a file, a directory, or a pattern with `*`, `?`, `[...]` and `**`."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from penstock.connectors.files.filesystem import open_storage
from penstock.connectors.files.patterns import MAGIC, compile_pattern, split_pattern
from penstock.connectors.files.storage import Entry, Storage
from penstock.core.text import nearest_file, shorten
from penstock.sdk.object_store import StorageOptions

_QUERY = re.compile(r"\?[a-z_]+=[^/]*\Z")


@dataclass(frozen=True)
class Location:
    """A path of a source: a root without wildcards, and a pattern below the root."""

    storage: Storage
    root: str
    pattern: str | None
    expression: re.Pattern[str] | None = None
    """The regular expression of the paths below the root."""

    def files(self, known: Container[str] = ()) -> Iterator[Entry]:
        """Yields the matching files except those with a known URL.

        Hidden files (`.x`, `_x`) match only if spelled out.
        """
        path = "/".join(filter(None, (self.root, self.pattern)))
        literal = self.storage.stat(path)
        if literal is not None:
            if self.storage.url(path) not in known:
                yield literal
            return
        pattern = self.pattern or "**/*"
        parts = pattern.split("/")
        depth = None if "**" in parts else len(parts)
        hidden = any(part.startswith((".", "_")) for part in parts[:-1])
        prefix, is_below = self.storage.prefix, self._is_below()
        yield from self.storage.walk(
            self.root, depth, hidden, lambda path: prefix + path not in known and is_below(path)
        )

    def has(self, path: str) -> bool:
        """Returns whether a file of this path is one of the location."""
        if path == "/".join(filter(None, (self.root, self.pattern))):
            return True
        return path.startswith(f"{self.root.rstrip('/')}/") and self._is_below()(path)

    def _is_below(self) -> Callable[[str], bool]:
        """Returns a function that matches paths below the root with the pattern."""
        match = compile_pattern(self.pattern or "**/*").match
        start, expression = len(self.root.rstrip("/")) + 1, self.expression

        def is_below(path: str) -> bool:
            if match(path, start) is None:
                return False
            return expression is None or expression.fullmatch(path[start:]) is not None

        return is_below

    def url(self) -> str:
        """Returns the path with the prefix of the storage."""
        return self.storage.url("/".join(filter(None, (self.root.rstrip("/"), self.pattern))))

    def hint(self) -> str:
        """Returns a hint for a location without files: the existing names."""
        directory, expected = self.root, self.pattern
        if expected is None and not self.storage.is_directory(directory):
            expected = PurePosixPath(directory).name
            directory = str(PurePosixPath(directory).parent)
        while not self.storage.is_directory(directory) and directory not in ("", "/", "."):
            expected = PurePosixPath(directory).name
            directory = str(PurePosixPath(directory).parent)
        url = self.storage.url(directory)
        names = [name for name in self.storage.names(directory) if not name.startswith(".")]
        if not names:
            return f"Check path: {url} is empty."
        if expected and not MAGIC.search(expected) and (close := nearest_file(expected, names)):
            return f'did you mean "{close}"?'
        return f"Check path: {url} contains {shorten(', '.join(names[:20]), 300)}."


def parse_location(
    path: str, options: StorageOptions | None = None, pattern: str | None = None
) -> Location:
    """Returns the location of a path or URL. `pattern` is a regular expression."""
    expression = re.compile(pattern) if pattern is not None else None
    scheme, separator, url_path = path.partition("://")
    if not separator:
        head, tail = split_pattern(path)
        return Location(*open_storage(head), tail, expression)
    query = _QUERY.search(url_path)
    head, tail = split_pattern(url_path[: query.start()] if query else url_path)
    url = f"{scheme}://{head}{query[0] if query else ''}"
    return Location(*open_storage(url, options), tail, expression)
