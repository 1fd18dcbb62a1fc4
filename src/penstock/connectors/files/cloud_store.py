"""Storage in Google Cloud Storage and Azure, with obstore.

pyarrow, which reads and writes S3, has no time limits for these stores, and cannot move a file in
Azure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, cast

from penstock.connectors.files.object_store import MAX_KEY_BYTES
from penstock.connectors.files.storage import Entry, Storage
from penstock.core.errors import ConnectError, PenstockError
from penstock.sdk import object_client, object_files
from penstock.sdk.object_client import StoreUrl, open_client
from penstock.sdk.object_errors import convert_error, is_missing_bucket
from penstock.sdk.object_files import os_errors
from penstock.sdk.object_store import StorageOptions, is_cloud

STALL_SECONDS = 15.0
"""The longest time in which a server sends nothing."""
_RETRIES = 1


class CloudStorage(Storage):
    """A bucket. Its paths begin with a slash. A move copies and deletes."""

    def __init__(self, url: str, options: StorageOptions) -> None:
        parts = StoreUrl.parse(url, options)
        self.bucket = parts.bucket
        scheme, _, rest = url.partition("://")
        self.prefix = f"{scheme}://{rest.partition('/')[0]}"
        retries = {**object_client.RETRIES, "max_retries": _RETRIES}
        try:
            self._store = open_client(
                url, options, whole=True, retries=retries, stall_seconds=STALL_SECONDS
            )
        except PenstockError:
            raise
        except Exception as error:
            raise self._converted(error, "reach", self.prefix) from error

    def excess(self, path: str) -> str | None:
        size = len(_key(path).encode())
        if size <= MAX_KEY_BYTES:
            return None
        return f"expected a key of at most {MAX_KEY_BYTES} bytes, found {size} bytes"

    def stat(self, path: str) -> Entry | None:
        import obstore

        with os_errors(), suppress(FileNotFoundError):
            return _entry(obstore.head(self._store, _key(path))) if _key(path) else None
        return None

    def is_directory(self, path: str) -> bool:
        import obstore

        with os_errors():
            pages = obstore.list(self._store, _key(path) or None, chunk_size=1)
            return next(iter(pages), None) is not None or not _key(path)

    def names(self, directory: str) -> list[str]:
        found = self._list(directory)
        objects = (each["path"] for each in found["objects"] if each["path"] != _key(directory))
        return sorted({path.rpartition("/")[2] for path in (*found["common_prefixes"], *objects)})

    def walk(
        self,
        root: str,
        depth: int | None = None,
        hidden: bool = False,
        match: Callable[[str], bool] | None = None,
    ) -> Iterator[Entry]:
        start = len(_key(root)) + bool(_key(root))
        for each in self._files(root, depth):
            *parents, _ = each["path"][start:].split("/")
            entry = _entry(each)
            if match is not None and not match(entry.path):
                continue
            too_deep = depth is not None and len(parents) >= depth
            if not too_deep and (hidden or not any(part[:1] in (".", "_") for part in parents)):
                yield entry

    def _files(self, root: str, depth: int | None) -> Iterator[Any]:
        """Yields the objects below a directory in order, except those that mark directories.

        The key of such an object is empty or ends with a slash, which the client removes.
        """
        found = sorted(self._objects(root, depth), key=lambda each: str(each["path"]))
        parents = {each["path"].rpartition("/")[0] for each in found} | {_key(root)}
        for each in found:
            is_mark = not each["size"] and each["path"] in parents
            if not is_mark and (each["size"] or self.stat(each["path"]) is not None):
                yield each

    def _objects(self, root: str, depth: int | None) -> list[Any]:
        import obstore

        if depth == 1:
            return list(self._list(root)["objects"])
        with os_errors():
            pages = obstore.list(self._store, _key(root) or None)
            return [each for page in pages for each in page]

    def _list(self, directory: str) -> Any:
        import obstore

        with os_errors():
            return obstore.list_with_delimiter(self._store, _key(directory) or None)

    def open(self, path: str, *, seekable: bool = True) -> BinaryIO:
        return object_files.open_reader(self._store, _key(path))

    def read(self, path: str) -> bytes | None:
        import obstore

        try:
            with os_errors():
                return bytes(obstore.get(self._store, _key(path)).bytes())
        except FileNotFoundError as error:
            if is_missing_bucket(error):
                raise
            return None

    def create(self, path: str) -> BinaryIO:
        return object_files.open_writer(self._store, _key(path))

    def close_durably(self, file: BinaryIO) -> None:
        file.close()

    def replace(self, path: str, content: bytes) -> None:
        import obstore

        with os_errors():
            obstore.put(self._store, _key(path), content, use_multipart=False)

    def move(self, source: str, target: str) -> None:
        """Moves a file. Azure may answer before a copy is complete; then its size is another."""
        import obstore

        with os_errors():
            obstore.copy(self._store, _key(source), _key(target))
        copied, original = self.stat(target), self.stat(source)
        if original is not None and (copied is None or copied.size != original.size):
            raise OSError(f"the copy of {_key(source)} is not complete")
        self.delete(source)

    def sync_directory(self, directory: str) -> None:
        """Does nothing: a completed upload is durable."""

    def delete(self, path: str) -> None:
        object_files.delete(self._store, _key(path))

    def prune(self, directory: str) -> None:
        """Does nothing: directories are prefixes of keys."""

    def convert_error(self, error: OSError, operation: str, url: str) -> ConnectError:
        if isinstance(error, FileNotFoundError) and not is_missing_bucket(error):
            return super().convert_error(error, operation, url)
        return self._converted(getattr(error, "error", error), operation, url)

    def _converted(self, error: Exception, operation: str, url: str) -> ConnectError:
        found = convert_error(
            error, operation, url, bucket=self.bucket, option="storage", source="path"
        )
        return cast(ConnectError, found)


def prefixes_of_earlier_versions(urls: Iterable[str]) -> dict[str, str]:
    """Returns the prefixes of files in Azure without the account, each with that of now."""
    found = {}
    for url in filter(is_cloud, urls):
        scheme, _, rest = url.partition("://")
        place = rest.partition("/")[0]
        container, has_account, _ = place.partition("@")
        if has_account:
            found[f"{scheme.lower()}://{container}/"] = f"{scheme}://{place}/"
    return found


def _key(path: str) -> str:
    return path.strip("/")


def _entry(meta: Any) -> Entry:
    """Returns a file. Only listings of Google Cloud Storage have fractions of a second."""
    seconds = int(meta["last_modified"].timestamp())
    return Entry(f"/{meta['path']}", int(meta["size"]), seconds * 10**9)
