"""Object stores, by pyarrow."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

import pyarrow.fs as pafs

from penstock.connectors.files.storage import Entry, Storage
from penstock.core.errors import ConnectError, Permanent, Transient
from penstock.core.text import did_you_mean

FLAT = ("s3", "gs", "gcs", "abfs", "abfss")
"""Where directories are nothing but parts of names."""
_CODE = re.compile(r"AWS Error ([A-Z_]+)(?: \(HTTP status (\d+)\))?")
_NO_BUCKET = re.compile(r"Bucket '[^']*' not found|AWS Error NO_SUCH_BUCKET")
_REFUSED = {
    "ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_SIGNATURE",
    "INVALID_CLIENT_TOKEN_ID", "MISSING_AUTHENTICATION_TOKEN", "UNRECOGNIZED_CLIENT",
    "REQUEST_EXPIRED", "400", "401", "403",
}  # fmt: skip


class ArrowStorage(Storage):
    """Object stores by pyarrow: a file is there when it is closed, a move is a copy and a delete.

    HDFS is for reading only, since a small file cannot be replaced there at one stroke.
    """

    def __init__(self, system: pafs.FileSystem, prefix: str = "", server: str | None = None):
        self.system = system
        self.prefix = prefix
        self._server = server or "the object store"
        self._flat = prefix.partition("://")[0].lower() in FLAT

    def stat(self, path: str) -> Entry | None:
        info = self.system.get_file_info(path)
        return _of(info) if info.type == pafs.FileType.File else None

    def is_directory(self, path: str) -> bool:
        return bool(self.system.get_file_info(path).type == pafs.FileType.Directory)

    def names(self, directory: str) -> list[str]:
        return sorted(info.base_name for info in self._list(directory, recursive=False))

    def walk(self, root: str, depth: int | None = None, hidden: bool = False) -> Iterator[Entry]:
        found = self._list(root, recursive=depth != 1)
        if not found and self._flat:
            self._require_bucket(root)
        for info in found:
            above = PurePosixPath(info.path).relative_to(root).parts[:-1]
            too_deep = depth is not None and len(above) >= depth
            skipped = not hidden and any(part.startswith((".", "_")) for part in above)
            if info.type == pafs.FileType.File and not too_deep and not skipped:
                yield _of(info)

    def _list(self, directory: str, recursive: bool) -> list[pafs.FileInfo]:
        selector = pafs.FileSelector(directory, allow_not_found=True, recursive=recursive)
        return sorted(self.system.get_file_info(selector), key=lambda info: str(info.path))

    def open(self, path: str, *, seekable: bool = True) -> BinaryIO:
        opened = self.system.open_input_file if seekable else self.system.open_input_stream
        raw = opened(path) if seekable else opened(path, compression=None)
        return cast(BinaryIO, raw if seekable else io.BufferedReader(raw, 1 << 20))

    def create(self, path: str) -> BinaryIO:
        self._above(path)
        return cast(BinaryIO, self.system.open_output_stream(path, compression=None))

    def seal(self, file: BinaryIO) -> None:
        file.close()

    def replace(self, path: str, content: bytes) -> None:
        self._above(path)
        with self.system.open_output_stream(path, compression=None) as stream:
            stream.write(content)

    def move(self, source: str, target: str) -> None:
        self._above(target)
        self.system.move(source, target)

    def settle(self, directory: str) -> None:
        """A finished upload is durable."""

    def delete(self, path: str) -> None:
        if self.stat(path) is not None:
            self.system.delete_file(path)

    def prune(self, directory: str) -> None:
        if self.is_directory(directory) and not any(self.walk(directory, hidden=True)):
            self.system.delete_dir(directory)

    def _above(self, path: str) -> None:
        """Makes the directories above a file; an object store has none."""
        if not self._flat:
            self.system.create_dir(str(PurePosixPath(path).parent), recursive=True)

    def _require_bucket(self, path: str) -> None:
        """Raises OSError if there is no such bucket; an empty listing does not tell."""
        bucket = path.partition("/")[0]
        with suppress(OSError):
            if self.is_directory(bucket):
                return
        raise OSError(f"Bucket '{bucket}' not found")

    def outside(self, error: OSError, doing: str, url: str) -> ConnectError:
        detail = str(error)
        if _NO_BUCKET.search(detail):
            return self._no_bucket(doing, url, detail)
        if not (match := _CODE.search(detail)):
            return super().outside(error, doing, url)
        code = match[2] or match[1]
        if code in _REFUSED:
            hint = (
                "look at the credentials (storage: {access_key: ..., secret_key: ...}, or the "
                "environment) and at what they may do in this bucket"
            )
            return Permanent(
                f"cannot {doing} {url}", code="no-permission", detail=detail, hint=hint
            )
        if code == "301":
            hint = "the bucket is in another region: say which one, storage: {region: ...}"
            return Permanent(f"cannot {doing} {url}", code="wrong-region", detail=detail, hint=hint)
        hint = f"is {self._server} up, and can it be reached from here?"
        return Transient(f"could not {doing} {url}", detail=detail, hint=hint)

    def _no_bucket(self, doing: str, url: str, detail: str) -> ConnectError:
        bucket = url.removeprefix(self.prefix).partition("/")[0]
        hint = None
        with suppress(OSError):
            hint = did_you_mean(bucket, self.names(""))
        return Permanent(
            f'cannot {doing} {url}: there is no bucket "{bucket}"',
            code="bucket-missing",
            detail=detail,
            hint=hint or "make the bucket first; Penstock does not",
        )


def _of(info: Any) -> Entry:
    return Entry(info.path, info.size or 0, info.mtime_ns or 0)
