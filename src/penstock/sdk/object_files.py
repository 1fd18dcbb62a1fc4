"""Files in the stores of `object_client`: reading in ranges, writing in parts."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, BinaryIO, cast

from penstock.sdk.object_reads import SizedReads

_READ_BYTES, _RANGE_BYTES = 4 << 20, 16 << 20
"""The bytes that are read ahead, and those of the largest request, whose time is limited."""
_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 2
"""How many parts are in memory while they are sent."""


class StoreError(OSError):
    """An error of obstore that is no OSError. `error` is the original one."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def os_errors() -> Iterator[None]:
    """Raises OSError for an error of obstore."""
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise StoreError(error) from error


def size(store: Any, key: str) -> int:
    """Returns the size of an object. Raises OSError."""
    import obstore

    with os_errors():
        return int(obstore.head(store, key)["size"])


def modified(store: Any, key: str) -> datetime:
    """Returns the time at which an object was written. Raises OSError."""
    import obstore

    with os_errors():
        return obstore.head(store, key)["last_modified"]


def open_reader(store: Any, key: str) -> BinaryIO:
    """Opens an object for reading. Raises OSError."""
    reader = _Reader(store, key, size(store, key))
    return cast(BinaryIO, io.BufferedReader(reader, _READ_BYTES))


def open_writer(store: Any, key: str) -> BinaryIO:
    """Creates an object, which is visible once it is closed. Raises OSError."""
    import obstore

    with os_errors():
        file = obstore.open_writer(
            store, key, buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
        )
    return cast(BinaryIO, _Writer(file))


def delete(store: Any, key: str) -> None:
    """Deletes an object if it exists. Raises OSError."""
    import obstore

    with os_errors(), suppress(FileNotFoundError):
        obstore.delete(store, key)


class _Reader(SizedReads):
    """An object that is read by requests for ranges."""

    def __init__(self, store: Any, key: str, size: int) -> None:
        super().__init__(size)
        self._store, self._key = store, key

    def _fill(self, view: memoryview) -> None:
        for start in range(0, len(view), _RANGE_BYTES):
            part = view[start : start + _RANGE_BYTES]
            part[:] = self._range(self._position + start, len(part))

    def _range(self, start: int, length: int) -> bytes:
        import obstore

        with os_errors():
            content = bytes(obstore.get_range(self._store, self._key, start=start, length=length))
        if len(content) != length:
            raise OSError(f"the response has {len(content)} of {length} bytes")
        return content


class _Writer(io.RawIOBase):
    """An object that is written in parts."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        view = memoryview(content).cast("B")
        with os_errors():
            self._file.write(bytes(view))
        self._position += len(view)
        return len(view)

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        with os_errors():
            self._file.close()
