"""Which files a path means: a file, a directory, or a pattern with `*`, `?`, `[...]` and `**`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from penstock.connectors.files.access import ObjectStore, storage_of
from penstock.connectors.files.storage import Entry, Storage
from penstock.core.text import did_you_mean, shorten

_MAGIC = re.compile(r"[*?\[]")
_QUERY = re.compile(r"\?[a-z_]+=[^/]*\Z")
_SHOWN = r"(?![._])"


@dataclass(frozen=True)
class Location:
    """One path of a source, split into a root without wildcards and a pattern below it."""

    storage: Storage
    root: str
    pattern: str | None

    def files(self) -> Iterator[Entry]:
        """The files it means now. Hidden ones (`.x`, `_x`) only where the pattern spells them."""
        whole = "/".join(filter(None, (self.root, self.pattern)))
        literal = self.storage.stat(whole)
        if literal is not None:
            yield literal
            return
        pattern = self.pattern or "**/*"
        match = re.compile(_regex(pattern)).match
        parts = pattern.split("/")
        depth = None if "**" in parts else len(parts)
        spelled = any(part.startswith((".", "_")) for part in parts[:-1])
        start = len(self.root.rstrip("/")) + 1
        for entry in self.storage.walk(self.root, depth, hidden=spelled):
            if match(entry.path[start:]):
                yield entry

    def url(self) -> str:
        """The path as the user wrote it."""
        return self.storage.url("/".join(filter(None, (self.root.rstrip("/"), self.pattern))))

    def hint(self) -> str:
        """What is there instead of what was asked for."""
        directory, wanted = self.root, self.pattern
        if wanted is None and not self.storage.is_directory(directory):
            wanted = PurePosixPath(directory).name
            directory = str(PurePosixPath(directory).parent)
        while not self.storage.is_directory(directory) and directory not in ("", "/", "."):
            wanted = PurePosixPath(directory).name
            directory = str(PurePosixPath(directory).parent)
        shown = self.storage.url(directory)
        names = [name for name in self.storage.names(directory) if not name.startswith(".")]
        if not names:
            return f"{shown} is empty"
        close = did_you_mean(wanted or "", names) if wanted and not _MAGIC.search(wanted) else None
        if close and close.startswith("did"):
            return close
        return f"{shown} has {shorten(', '.join(names[:20]), 300)}"


def location_of(path: str, store: ObjectStore | None = None) -> Location:
    """A path or URL as a location."""
    scheme, mark, rest = path.partition("://")
    if not mark:
        head, tail = _split(path)
        return Location(*storage_of(head), tail)
    query = _QUERY.search(rest)
    head, tail = _split(rest[: query.start()] if query else rest)
    url = f"{scheme}://{head}{query[0] if query else ''}"
    return Location(*storage_of(url, store), tail)


def _split(path: str) -> tuple[str, str | None]:
    if not _MAGIC.search(path):
        return path, None
    parts = path.split("/")
    first = next(at for at, part in enumerate(parts) if _MAGIC.search(part))
    return "/".join(parts[:first]) or "/", "/".join(parts[first:])


def _regex(pattern: str) -> str:
    """The pattern as a regular expression over slashed paths; hidden names need spelling out."""
    parts = pattern.split("/")
    out = []
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**":
            out.append(f"(?:{_SHOWN}[^/]+/)*" + (f"{_SHOWN}[^/]+" if last else ""))
        else:
            out.append(_segment(part) + ("" if last else "/"))
    return "".join(out) + r"\Z"


def _segment(part: str) -> str:
    out = _SHOWN if _MAGIC.match(part) else ""
    at = 0
    while at < len(part):
        letter = part[at]
        closing = part.find("]", at + 2) if letter == "[" else -1
        if letter == "*":
            out += "[^/]*"
        elif letter == "?":
            out += "[^/]"
        elif closing > 0:
            body = part[at + 1 : closing].replace("\\", "\\\\")
            out += "[" + ("^" + body[1:] if body[0] in "!^" else body) + "]"
            at = closing
        else:
            out += re.escape(letter)
        at += 1
    return out
