"""Options of the files source and sink."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from penstock.connectors.files.notifications.config import NotificationsConfig
from penstock.connectors.files.patterns import compile_pattern, split_pattern
from penstock.sdk import ByteSize, Config, Duration
from penstock.sdk.config import RegularExpression
from penstock.sdk.object_store import CLOUD_SCHEMES, StorageOptions, StoragePath

_CONVERSIONS = frozenset("aAbBCdDeFgGhHIjmMpRSTuUVwWyY%")
"""The conversions of strftime that do not depend on a time zone."""


def _check_pattern(path: str) -> str:
    _, pattern = split_pattern(path.partition("://")[2] or path)
    if pattern is not None:
        compile_pattern(pattern)
    return path


PathPattern = Annotated[StoragePath, AfterValidator(_check_pattern)]
"""A path or URL that may be a pattern."""

Compression = Literal["auto", "none", "gzip", "bz2", "xz", "zstd", "lz4", "brotli"]


class Move(Config):
    """The destination of files after their rows are written to all sinks."""

    move: StoragePath
    """The directory, in the same file system. Files keep their path below the common directory of
    `path`: with `path: in/*/*.csv`, `in/a/x.csv` becomes `a/x.csv`. An existing file is not
    overwritten: the name of the moved file has a number, as in `a/x-1.csv`. Files in the directory
    are not read."""


class FilesSourceConfig(Config):
    path: PathPattern | list[PathPattern]
    """A file, a directory (with all files below it), a pattern with `*`, `?`, `[...]` and `**`, or
    a list of them; also URLs (`s3://`, `gs://`, `abfss://`, `az://`, `hdfs://`, `file://`). Names
    that start with a dot or an underscore are skipped unless the pattern spells them out. Named
    pipes, sockets and devices are skipped with a warning; as a path of their own they are an error.
    A file with several links is read once, if possible under a path without symbolic links."""
    pattern: RegularExpression | None = None
    """A regular expression that matches the whole paths of files, relative to the directory of
    `path`: `orders/.*-\\d+\\.json`. All files by default."""
    storage: StorageOptions | None = None
    """The connection to the object store of URLs."""
    watch: bool = False
    """Run continuously and read files that appear later. Large directories are listed less often:
    listing takes at most about a tenth of a processor core."""
    tail: bool = False
    """Run continuously and read appended lines. The last line is read once it has a line end. A
    file that was truncated or replaced is read from its beginning. To read every line of rotated
    files, use a pattern that includes their new names (`app.log*`): renamed files, copies
    (`copytruncate`) and compressed files are continued where the original was read. Such files are
    recognized by the inode, or by the first 256 bytes and the 4 KB before the last offset; copies
    also by the directory and a longer name that starts alike. A compressed file of which no
    content was found before its compression is skipped, with a warning if it is newer than the
    lines already read."""
    idle_timeout: Duration = Field(default=5.0, ge=0.001)
    """With `tail`, the time after which the last record of a file is complete, for a format whose
    records have several lines, such as `text` with `record_start`. Before, it is complete when the
    next record starts. Lines that are appended later are a record of their own."""
    notifications: NotificationsConfig | None = None
    """A queue of Amazon SQS that S3 notifies of new objects, directly or by Amazon SNS or Amazon
    EventBridge, in place of listing `path` again and again. The queue is for this source only: all
    its notifications are deleted once the files of `path` are recorded. An object that is
    overwritten is read again if its size or the second of its change differs."""
    order: Literal["modified", "name"] = "modified"
    """The order of files that are discovered together."""
    max_files: int | None = Field(default=None, ge=1)
    """The maximum number of files in a batch."""
    max_size: ByteSize | None = Field(default=None, ge=1)
    """The maximum size of the files in a batch. A batch has at least one file."""
    compression: Compression = "auto"
    """The compression of files. `auto` detects it by the file extension. Content of more than 64 MB
    and 1,000 times its compressed size is not read: the rest of the file is a dead letter."""
    min_age: Duration = Field(default=0.0, ge=0)
    """Skip files that were modified less than this long ago, because they may be incomplete."""
    on_changed: Literal["fail", "continue"] = "fail"
    """For a file that was modified between discovery and reading: `fail`, because rows may be
    missing or duplicated, or `continue` with its current content."""
    on_missing: Literal["fail", "continue"] = "fail"
    """For a file that was deleted between discovery and reading: `fail`, or `continue` without
    its rows."""
    after_read: Literal["keep", "delete"] | Move = "keep"
    """For a file whose rows are written to all sinks: `keep`, `delete`, or
    `{move: DIRECTORY}`. With `delete` and `move` a later file of the same path is a new file, and
    so is a file that was modified after it was read."""

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.tail and self.compression not in ("auto", "none"):
            raise ValueError("tail requires uncompressed files")
        if self.tail and self.after_read != "keep":
            raise ValueError("tail requires after_read: keep")
        if "idle_timeout" in self.model_fields_set and not self.tail:
            raise ValueError("idle_timeout requires tail: a file is read to its end without it")
        if not self.path:
            raise ValueError("expected at least one path")
        if self.notifications is not None:
            self._check_notifications()
        move = self.after_read.move if isinstance(self.after_read, Move) else None
        if move is not None and any(_system(path) != _system(move) for path in self.paths):
            raise ValueError("after_read.move requires a directory in the file system of path")
        return self

    def _check_notifications(self) -> None:
        if any(_system(path)[0] != "s3" for path in self.paths):
            raise ValueError("notifications requires paths in S3: s3://BUCKET/PREFIX")
        if self.tail:
            raise ValueError("notifications excludes tail: objects in S3 do not grow")
        if self.min_age:
            raise ValueError(
                "notifications excludes min_age: objects of notifications are complete"
            )

    @property
    def paths(self) -> list[str]:
        """The paths."""
        return [self.path] if isinstance(self.path, str) else self.path

    @property
    def lists(self) -> bool:
        """Whether files are listed at the start of a run."""
        return self.notifications is None or self.notifications.listing == "start"


def _system(path: str) -> tuple[str, str]:
    """Returns the scheme of a path, with the bucket if files cannot be moved between buckets."""
    scheme, separator, rest = path.partition("://")
    scheme = scheme.lower() if separator else "file"
    return scheme, rest.partition("/")[0] if scheme in CLOUD_SCHEMES else ""


class Roll(Config):
    """Conditions under which collected rows become a visible file. The first one met applies."""

    max_size: ByteSize | None = Field(default=None, ge=1)
    """The size of a file on disk."""
    interval: Duration | None = Field(default=None, ge=0)
    """The maximum time until a row is visible, give or take a tenth."""

    @model_validator(mode="after")
    def _check_one_condition(self) -> Self:
        if self.max_size is None and self.interval is None:
            raise ValueError("expected max_size, interval, or both")
        return self


class TimePartition(Config):
    """Directories by the time of rows."""

    column: str
    """A column of the type TIMESTAMP or TIMESTAMP_NTZ."""
    pattern: str
    """The directories as a pattern of strftime, in UTC: `%Y/%m/%d/%H`, `day=%Y-%m-%d`. A null is in
    the directory `__HIVE_DEFAULT_PARTITION__`."""
    stored: bool = True
    """Whether the files contain the column."""

    @field_validator("pattern")
    @classmethod
    def _check_pattern(cls, pattern: str) -> str:
        return _check_time_pattern(pattern)


def _check_time_pattern(pattern: str) -> str:
    """Returns a pattern of directories. Raises ValueError."""
    for conversion in re.findall(r"%(.?)", pattern):
        if not conversion or conversion not in _CONVERSIONS:
            raise ValueError(
                f'"%{conversion}" is not supported in a pattern of directories: '
                "expected %Y, %m, %d, %H, %M or another one of strftime"
            )
    if pattern.startswith("/"):
        raise ValueError("expected a relative directory: the pattern starts with /")
    for name in pattern.split("/"):
        if not name or name.startswith((".", "_")):
            raise ValueError(
                "expected names between slashes that are not empty and start with neither a dot "
                "nor an underscore"
            )
    return pattern


class FilesSinkConfig(Config):
    path: StoragePath
    """The directory, or its URL (`s3://`, `gs://`, `abfss://`, `az://`, `file://`). With `append` a
    file."""
    append: bool = False
    """Append all rows to the file `path` instead of writing several files to a directory. Other
    programs can read, rotate and extend the file; they may see a part of a batch. Only for local
    files and for formats without header and footer, such as `json`."""
    storage: StorageOptions | None = None
    """The connection to the object store of an `s3://` URL."""
    partition_by: list[str] = []
    """Columns that become directories, such as `carrier=AA/`. They are not stored in the files.
    Rows whose values make a name of more than 255 bytes, or in object stores a key of more than
    1,024 bytes, are dead letters."""
    partition_time: TimePartition | None = None
    """Directories by the time of rows, above those of `partition_by`: with `{column: at, pattern:
    "%Y/%m/%d"}` the files of a day are in `2026/01/31/`."""
    roll: Roll | None = None
    """Collect the rows of several batches into one file. By default each batch writes its own
    files."""
    compression: Literal["none", "gzip", "bz2", "xz", "zstd", "lz4"] = "none"
    """The compression of files. Formats with internal compression (parquet) have their own
    option."""
    prefix: str = Field(default="part", max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9 .=_-]*$")
    """The prefix of file names."""
    suffix: str | None = Field(
        default=None, max_length=50, pattern=r"^\.[A-Za-z0-9][A-Za-z0-9._-]*$"
    )
    """The suffix of file names, such as `.json`. By default that of the format and of the
    compression, by which sources recognize compressed files."""

    @model_validator(mode="after")
    def _check_append(self) -> Self:
        if not self.append:
            return self
        if _system(self.path)[0] != "file":
            raise ValueError("append requires a local file: object stores cannot extend a file")
        directory_options = self.model_fields_set & {
            "partition_by", "partition_time", "roll", "prefix", "suffix",
        }  # fmt: skip
        if directory_options:
            raise ValueError(f"append excludes {', '.join(sorted(directory_options))}")
        return self
