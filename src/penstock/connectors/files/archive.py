"""Archive: deletion or move of files whose rows are written to all sinks."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from itertools import count
from pathlib import PurePosixPath

import structlog

from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.listing import Location
from penstock.connectors.files.storage import Storage

logger = structlog.get_logger(__name__)


class Archive:
    """The files of `locations` after reading: moved to `target`, or deleted without a target.

    A moved file keeps its path below the common directory of the locations.
    """

    def __init__(self, locations: Sequence[Location], target: Location | None) -> None:
        self._locations = locations
        self._target = target

    def put(self, storage: Storage, range_: FileRange) -> None:
        """Moves or deletes a file. A file that was modified after its discovery is kept."""
        path = range_.path[len(storage.prefix) :]
        with storage.convert_errors("move or delete", range_.display_path):
            entry = storage.stat(path)
            if entry is None:
                return
            if (entry.size, entry.modified) != (range_.size, range_.modified):
                logger.warning("file modified after reading", path=range_.display_path)
            elif self._target is None:
                storage.delete(path)
            else:
                storage.move(path, self._free_path(storage, path))

    def _free_path(self, storage: Storage, path: str) -> str:
        """Returns the path of a file in the target directory; with a number if the path exists."""
        assert self._target is not None
        roots = [location.root for location in self._locations]
        common = os.path.commonpath(roots)
        directory = str(PurePosixPath(path).parent) if common == path else common
        moved = f"{self._target.root.rstrip('/')}/{os.path.relpath(path, directory or '.')}"
        paths = (_numbered(moved, number) if number else moved for number in count())
        return next(candidate for candidate in paths if storage.stat(candidate) is None)


def _numbered(path: str, number: int) -> str:
    """Returns a path with a number before the extensions of its name, as in `x-1.csv.gz`."""
    directory, separator, name = path.rpartition("/")
    stem, dot, extensions = name[1:].partition(".")
    return f"{directory}{separator}{name[:1]}{stem}-{number}{dot}{extensions}"
