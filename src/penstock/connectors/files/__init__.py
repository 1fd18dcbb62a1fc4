"""Files on disks and in object stores."""

from penstock.connectors.files.config import FilesSinkConfig, FilesSourceConfig
from penstock.connectors.files.sink import FilesSink
from penstock.connectors.files.source import FilesSource

__all__ = ["FilesSink", "FilesSinkConfig", "FilesSource", "FilesSourceConfig"]
