"""Files of tables: by pyarrow, or with the option storage by obstore in Google Cloud and Azure."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, cast

from pyiceberg.io import InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from penstock.connectors.iceberg.client import is_local
from penstock.sdk import object_files
from penstock.sdk.object_client import StoreUrl, open_client
from penstock.sdk.object_reads import open_whole
from penstock.sdk.object_store import StorageOptions, is_cloud

STORAGE = "penstock.storage"
"""The property with the option `storage`."""


class WholeFileIO(PyArrowFileIO):
    """Files whose reads return all of their bytes or raise OSError."""

    def new_input(self, location: str) -> Any:
        if self._is_cloud(location):
            return _CloudFile(location, self.properties[STORAGE])
        file = super().new_input(location)
        if is_local(location):
            return file
        return _WholeFile(location, file._path, file._filesystem, file._buffer_size)

    def new_output(self, location: str) -> Any:
        if self._is_cloud(location):
            return _CloudFile(location, self.properties[STORAGE])
        return super().new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        url = location if isinstance(location, str) else location.location
        if self._is_cloud(url):
            object_files.delete(*_CloudFile(url, self.properties[STORAGE]).place)
        else:
            super().delete(location)

    def _is_cloud(self, location: str) -> bool:
        """Returns whether the option `storage` connects by obstore to the store of a file."""
        return is_cloud(location) and self.properties.get(STORAGE) is not None


class _CloudFile(InputFile, OutputFile):
    def __init__(self, location: str, options: StorageOptions) -> None:
        super().__init__(location)
        self._options = options

    @cached_property
    def place(self) -> tuple[Any, str]:
        """The bucket and the key of the file."""
        key = StoreUrl.parse(self.location, self._options).key
        return _bucket(self.location.removesuffix(key), self._options), key

    def __len__(self) -> int:
        return object_files.size(*self.place)

    def exists(self) -> bool:
        try:
            return len(self) >= 0
        except FileNotFoundError:
            return False

    def open(self, seekable: bool = True) -> InputStream:
        return cast(InputStream, object_files.open_reader(*self.place))

    def create(self, overwrite: bool = False) -> OutputStream:
        if not overwrite and self.exists():
            raise FileExistsError(f"{self.location} exists")
        return cast(OutputStream, object_files.open_writer(*self.place))

    def to_input_file(self) -> InputFile:
        return self


@cache
def _bucket(url: str, options: StorageOptions) -> Any:
    with object_files.os_errors():
        return open_client(url, options)


class _WholeFile(PyArrowFile):
    def open(self, seekable: bool = True) -> InputStream:
        return cast(InputStream, open_whole(lambda: cast(Any, super(_WholeFile, self).open())))
