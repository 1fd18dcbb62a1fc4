"""Files, on a disk or in an object store."""

from penstock.connectors.files.sink import FilesSink, FilesSinkConfig
from penstock.connectors.files.source import FilesSource
from penstock.connectors.files.wanted import FilesSourceConfig

__all__ = ["FilesSink", "FilesSinkConfig", "FilesSource", "FilesSourceConfig"]
