"""Locating discovered files when they are read: under their own name, renamed, or copied."""

from __future__ import annotations

from collections.abc import Iterator

import structlog

from penstock.connectors.files.compression import codec_of
from penstock.connectors.files.config import FilesSourceConfig
from penstock.connectors.files.content import open_content
from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.fingerprint import continues, may_be_rotated
from penstock.connectors.files.storage import Entry, Storage
from penstock.core.errors import DecodeError, Permanent, Transient

logger = structlog.get_logger(__name__)


def locate(storage: Storage, range_: FileRange, config: FilesSourceConfig) -> Entry | None:
    """Returns the file with the content of a range. Raises Permanent if there is none.

    Returns None for a missing file with `on_missing: continue`, and for lines that are no longer
    in a growing file with `on_changed: continue`.
    """
    path = range_.path[len(storage.prefix) :]
    entry = storage.stat(path)
    if config.tail and range_.stop is not None:
        for candidate in _candidates(storage, path, entry, range_):
            if _has_content(storage, candidate, range_):
                return candidate
    elif entry and (entry.size, entry.modified) == (range_.size, range_.modified):
        return entry
    if entry is None:
        if config.on_missing == "continue":
            return None
        raise Permanent(
            f"cannot read {range_.display_path}: the file was deleted after its discovery",
            code="missing-file",
            hint="Restore the file, or set on_missing: continue.",
        )
    if config.on_changed == "fail":
        raise _changed_error(range_, entry)
    if config.tail and range_.stop is not None:
        logger.warning(
            f"skipping lines of {range_.display_path}: the file was truncated after their discovery"
        )
        return None
    return entry


def check_unchanged(
    storage: Storage, range_: FileRange, opened: Entry, config: FilesSourceConfig
) -> None:
    """Raises Transient if a growing file was truncated while it was read, otherwise Permanent."""
    entry = locate(storage, range_, config)
    if not config.tail or (entry is None and config.on_missing == "continue"):
        return
    same = entry is not None and (entry.inode, bool(entry.inode) or entry.path) == (
        opened.inode,
        bool(opened.inode) or opened.path,
    )
    if not same:
        raise Transient(
            f"could not read {range_.display_path}: the file was truncated while it was read",
            code="file-changed",
        )


def _candidates(
    storage: Storage, path: str, entry: Entry | None, range_: FileRange
) -> Iterator[Entry]:
    """Yields the file of a path, then files with the same inode, then files with rotated names."""
    if entry is not None:
        yield entry
    directory = path.rpartition("/")[0]
    others = [other for other in storage.walk(directory, 1) if other.path != path]
    yield from (other for other in others if range_.inode and other.inode == range_.inode)
    yield from (other for other in others if may_be_rotated(path, other.path))


def _has_content(storage: Storage, entry: Entry, range_: FileRange) -> bool:
    if codec_of(entry.path, "auto") is None and entry.size < (range_.stop or 0):
        return False
    try:
        with open_content(storage, entry.path) as content:
            return continues(content, range_)
    except (DecodeError, FileNotFoundError):
        return False


def _changed_error(range_: FileRange, entry: Entry) -> Permanent:
    return Permanent(
        f"cannot read {range_.display_path}: the file was modified after its discovery",
        code="file-changed",
        detail=f"expected {range_.size:,} bytes, found {entry.size:,}",
        hint="Write files elsewhere and rename them when they are complete. Or set "
        "min_age: 10s, tail: true for growing files, or on_changed: continue to read a "
        "corrected file again.",
    )
