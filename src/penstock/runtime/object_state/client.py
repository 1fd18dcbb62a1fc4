"""Objects below the URL of a state, with conditional writes, by obstore.

pyarrow, which the files connector uses, has no conditional writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from penstock.core.errors import ConnectError, PenstockError
from penstock.runtime.object_state.errors import convert_error
from penstock.sdk.object_client import open_client
from penstock.sdk.object_errors import is_missing_bucket
from penstock.sdk.object_store import StorageOptions


class Conflict(Exception):
    """A conditional write of an object that has another version."""


@dataclass(frozen=True)
class Version:
    """A version of an object. `modified` is by the clock of the server."""

    id: dict[str, str]
    modified: datetime


class ObjectClient:
    """The objects below a URL, by their keys. A write is atomic and durable.

    A temporary failure is retried for seconds, and then raises Transient.
    """

    def __init__(self, url: str, options: StorageOptions | None = None) -> None:
        self.url, self._options = url, options or StorageOptions()

    @cached_property
    def _store(self) -> Any:
        with self._errors("reach"):
            return open_client(self.url, self._options, extra="object_state")

    def read(self, key: str) -> tuple[bytes, Version] | None:
        """Returns an object and its version; None without the object."""
        import obstore

        with self._errors("read", key), self._missing():
            result = obstore.get(self._store, key)
            return bytes(result.bytes()), _version(result.meta)
        return None

    def version(self, key: str) -> Version | None:
        """Returns the version of an object; None without the object."""
        import obstore

        with self._errors("read", key), self._missing():
            return _version(obstore.head(self._store, key))
        return None

    def write(self, key: str, content: bytes) -> None:
        """Writes an object in place of an earlier one."""
        self._put(key, content, "overwrite")

    def create(self, key: str, content: bytes) -> dict[str, str]:
        """Writes a new object and returns its version. Raises Conflict if the object exists."""
        return self._put(key, content, "create")

    def replace(self, key: str, content: bytes, version: dict[str, str]) -> dict[str, str]:
        """Replaces a version of an object and returns the new one.

        Raises Conflict if the object has another version.
        """
        return self._put(key, content, version)

    def keys(self, prefix: str) -> list[str]:
        """Returns the keys of the objects below a prefix."""
        import obstore

        with self._errors("list", prefix):
            return [
                str(meta["path"]) for page in obstore.list(self._store, prefix) for meta in page
            ]

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects. Missing ones are ignored."""
        import obstore

        for key in keys:
            with self._errors("delete", key), self._missing():
                obstore.delete(self._store, key)

    def _put(self, key: str, content: bytes, mode: Any) -> dict[str, str]:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._errors("write", key):
            try:
                result = obstore.put(self._store, key, content, mode=mode, use_multipart=False)
            except (AlreadyExistsError, FileExistsError, PreconditionError) as error:
                raise Conflict(str(error)) from None
            return _identity(result)

    @contextmanager
    def _missing(self) -> Iterator[None]:
        """Ignores a missing object. A missing bucket remains an error."""
        try:
            yield
        except FileNotFoundError as error:
            if is_missing_bucket(error):
                raise

    @contextmanager
    def _errors(self, operation: str, key: str = "") -> Iterator[None]:
        """Converts the errors of an operation. A provider of credentials may raise any class."""
        try:
            yield
        except (Conflict, PenstockError):
            raise
        except Exception as error:
            raise convert_error(error, operation, f"{self.url}/{key}".rstrip("/")) from None


def _version(meta: Any) -> Version:
    return Version(_identity(meta), meta["last_modified"])


def _identity(meta: Any) -> dict[str, str]:
    """Returns the entity tag and the version ID of an object, of which a store has one or both."""
    return {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}


@contextmanager
def ignored_failures() -> Iterator[None]:
    """Ignores failures of an operation that a later one repeats."""
    with suppress(ConnectError, Conflict):
        yield
