"""Storage in S3 and HDFS, with pyarrow."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

import pyarrow.fs as pafs

from penstock.connectors.files.storage import Entry, Storage
from penstock.core.errors import ConnectError, Permanent, Transient
from penstock.core.text import did_you_mean
from penstock.sdk.network.tls import certificate_hint
from penstock.sdk.object_reads import open_whole
from penstock.sdk.object_store import is_untrusted

MAX_KEY_BYTES = 1024
"""The maximum size of the key of an object."""
PAGE_KEYS = 1000
"""The number of keys in a page of a listing of S3."""
_CODE = re.compile(r"AWS Error ([A-Z_]+)(?: \(HTTP status (\d+)\))?")
_NO_BUCKET = re.compile(r"Bucket '[^']*' not found|AWS Error NO_SUCH_BUCKET")
_AUTH_ERRORS = {
    "ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_SIGNATURE",
    "INVALID_CLIENT_TOKEN_ID", "MISSING_AUTHENTICATION_TOKEN", "UNRECOGNIZED_CLIENT",
    "REQUEST_EXPIRED", "400", "401", "403",
}  # fmt: skip


class ArrowStorage(Storage):
    """A file system of pyarrow. A file is visible once it is closed; a move copies and deletes.

    HDFS is read-only, because it cannot replace a file atomically.
    """

    def __init__(self, system: pafs.FileSystem, prefix: str = "", server: str | None = None):
        self.system = system
        self.prefix = prefix
        self._server = server or "the object store"
        self._flat = prefix.partition("://")[0].lower() == "s3"
        """Whether directories are only prefixes of names."""

    def excess(self, path: str) -> str | None:
        if not self._flat:
            return super().excess(path)
        size = len(path.partition("/")[2].encode())
        if size <= MAX_KEY_BYTES:
            return None
        return f"expected a key of at most {MAX_KEY_BYTES} bytes, found {size} bytes"

    def stat(self, path: str) -> Entry | None:
        info = self.system.get_file_info(path)
        if self._flat and info.type == pafs.FileType.File and not (info.size and info.mtime_ns):
            # The client accepts a response that was cut between its headers.
            info = self.system.get_file_info(path)
        return _entry(info) if info.type == pafs.FileType.File else None

    def is_directory(self, path: str) -> bool:
        return bool(self.system.get_file_info(path).type == pafs.FileType.Directory)

    def names(self, directory: str) -> list[str]:
        return sorted(info.base_name for info in self._list(directory, recursive=False))

    def walk(
        self,
        root: str,
        depth: int | None = None,
        hidden: bool = False,
        match: Callable[[str], bool] | None = None,
    ) -> Iterator[Entry]:
        infos = self._list(root, recursive=depth != 1)
        if not infos and self._flat:
            self._check_bucket(root)
        for info in infos:
            if info.type != pafs.FileType.File or not (match is None or match(info.path)):
                continue
            parents = PurePosixPath(info.path).relative_to(root).parts[:-1]
            too_deep = depth is not None and len(parents) >= depth
            skipped = not hidden and any(part.startswith((".", "_")) for part in parents)
            if not too_deep and not skipped:
                yield _entry(info)

    def _list(self, directory: str, recursive: bool) -> list[pafs.FileInfo]:
        selector = pafs.FileSelector(directory, allow_not_found=True, recursive=recursive)
        infos = self.system.get_file_info(selector)
        if self._flat and _fills_pages(infos):
            # The client takes a page that was cut between its headers for an empty last page.
            infos = self.system.get_file_info(selector)
        return sorted(infos, key=lambda info: str(info.path))

    def open(self, path: str, *, seekable: bool = True) -> BinaryIO:
        if self._flat:
            file: Any = open_whole(lambda: self.system.open_input_file(path))
        elif seekable:
            file = self.system.open_input_file(path)
        else:
            file = self.system.open_input_stream(path, compression=None)
        return cast(BinaryIO, file if seekable else io.BufferedReader(file, 1 << 20))

    def read(self, path: str) -> bytes | None:
        try:
            with self.open(path) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def create(self, path: str) -> BinaryIO:
        self._create_parent(path)
        return cast(BinaryIO, self.system.open_output_stream(path, compression=None))

    def close_durably(self, file: BinaryIO) -> None:
        file.close()

    def replace(self, path: str, content: bytes) -> None:
        self._create_parent(path)
        with self.system.open_output_stream(path, compression=None) as stream:
            stream.write(content)

    def move(self, source: str, target: str) -> None:
        self._create_parent(target)
        self.system.move(source, target)

    def sync_directory(self, directory: str) -> None:
        """Does nothing: a completed upload is durable."""

    def delete(self, path: str) -> None:
        if self.stat(path) is not None:
            self.system.delete_file(path)

    def prune(self, directory: str) -> None:
        found = self._list(directory, recursive=True)
        has_files = any(info.type == pafs.FileType.File for info in found)
        if not has_files and self.is_directory(directory):
            self.system.delete_dir(directory)

    def _create_parent(self, path: str) -> None:
        """Creates the parent directories of a file, except in object stores."""
        if not self._flat:
            self.system.create_dir(str(PurePosixPath(path).parent), recursive=True)

    def _check_bucket(self, path: str) -> None:
        """Raises OSError if a bucket does not exist. The listing of a missing bucket is empty."""
        bucket = path.partition("/")[0]
        if not self.is_directory(bucket):
            raise OSError(f"Bucket '{bucket}' not found")

    def convert_error(self, error: OSError, operation: str, url: str) -> ConnectError:
        detail = str(error)
        if _NO_BUCKET.search(detail):
            return self._no_bucket(operation, url, detail)
        if not (match := _CODE.search(detail)):
            return super().convert_error(error, operation, url)
        if is_untrusted(detail):
            return Permanent(
                f"cannot {operation} {url}: TLS verification of {self._server} failed", code="tls",
                detail=detail,
                hint=certificate_hint(detail, "Set storage.tls.ca to the CA certificate file."),
            )  # fmt: skip
        code = match[2] or match[1]
        if code in _AUTH_ERRORS:
            hint = (
                "Check the credentials (storage.auth, or the environment) and their permissions "
                "for this bucket."
            )
            return Permanent(
                f"cannot {operation} {url}", code="authorization", detail=detail, hint=hint
            )
        if code == "301":
            hint = "Set storage.region to the region of the bucket."
            return Permanent(
                f"cannot {operation} {url}", code="wrong-region", detail=detail, hint=hint
            )
        hint = f"Check that {self._server} is running and reachable."
        return Transient(f"could not {operation} {url}", detail=detail, hint=hint)

    def _no_bucket(self, operation: str, url: str, detail: str) -> ConnectError:
        bucket = url.removeprefix(self.prefix).partition("/")[0]
        hint = None
        with suppress(OSError):
            hint = did_you_mean(bucket, self.names(""))
        return Permanent(
            f'cannot {operation} {url}: bucket "{bucket}" does not exist',
            code="unknown-bucket",
            detail=detail,
            hint=hint or "Create the bucket.",
        )


def _fills_pages(infos: Sequence[pafs.FileInfo]) -> bool:
    """Returns whether a listing may lack a page. A page of a recursive one has no directories."""
    files = sum(info.type == pafs.FileType.File for info in infos)
    return 0 in (files % PAGE_KEYS, len(infos) % PAGE_KEYS)


def _entry(info: Any) -> Entry:
    return Entry(info.path, info.size or 0, info.mtime_ns or 0)
