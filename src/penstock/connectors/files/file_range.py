"""A part of a discovered file, which is read at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileRange:
    """A file, or a byte range of a file.

    `stop` is None for a whole file. `line` is the number of lines before the range. `inode`,
    `head_hash` (of the first `head_size` bytes) and `block_hash` (of the last block before `stop`)
    identify a growing file. Offsets of a compressed growing file are those of its content.
    `generation` counts how often the file of this path was truncated or replaced. With
    `starts_inside` the range starts within a record of several lines that is too long, of which a
    range before it has the start; with `ends_inside` it ends within such a record.
    """

    path: str
    size: int
    modified: int
    start: int = 0
    stop: int | None = None
    line: int = 0
    lines: int = 0
    inode: int = 0
    generation: int = 0
    head_size: int = 0
    head_hash: str = ""
    block_hash: str = ""
    starts_inside: bool = False
    ends_inside: bool = False

    @property
    def bytes(self) -> int:
        """The number of bytes to read."""
        return self.size if self.stop is None else self.stop - self.start

    @property
    def is_last(self) -> bool:
        """Whether the range ends at the end of the file."""
        return self.stop is None or self.stop == self.size

    @property
    def origin(self) -> str:
        """The origin of the file's records in dead letters."""
        return f"{self.display_path}#{self.generation}" if self.generation else self.display_path

    @property
    def display_path(self) -> str:
        """The path as valid Unicode text."""
        return self.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
