"""Files of tables by the file systems of pyarrow."""

from __future__ import annotations

from typing import Any, cast

from pyiceberg.io import InputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from penstock.connectors.iceberg.client import is_local
from penstock.sdk.object_reads import open_whole


class WholeFileIO(PyArrowFileIO):
    """Files whose reads return all of their bytes or raise OSError."""

    def new_input(self, location: str) -> PyArrowFile:
        file = super().new_input(location)
        if is_local(location):
            return file
        return _WholeFile(location, file._path, file._filesystem, file._buffer_size)


class _WholeFile(PyArrowFile):
    def open(self, seekable: bool = True) -> InputStream:
        return cast(InputStream, open_whole(lambda: cast(Any, super(_WholeFile, self).open())))
