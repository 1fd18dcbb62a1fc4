"""Which files a source reads, and how: its options."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from penstock.connectors.files.access import ObjectStore, Place
from penstock.connectors.files.compression import Compression
from penstock.sdk import ByteSize, Config, Duration


class FilesSourceConfig(Config):
    path: Place | list[Place]
    """A file, a directory (with all below it), a pattern with `*`, `?`, `[...]` and `**`, or a
    list of them; also URLs (`s3://`, `gs://`, `abfs://`, `hdfs://`, `file://`). Names that start
    with a dot or an underscore are left out unless the pattern spells them."""
    storage: ObjectStore | None = None
    """How the object store of `s3://` URLs is reached."""
    watch: bool = False
    """Go on for ever: files that appear later are read too."""
    tail: bool = False
    """Read files as they grow, line by line, and go on for ever. A last line waits for its
    end. A file that became shorter or was replaced starts again; let the pattern include the
    names that rotated files get (`app.log*`), and no line is missed."""
    order: Literal["modified", "name"] = "modified"
    """In which order files that were found together are read."""
    max_files: int | None = Field(default=None, ge=1)
    """The most files of one batch."""
    max_bytes: ByteSize | None = Field(default=None, ge=1)
    """The most bytes of one batch, but always one file."""
    compression: Compression = "auto"
    """How files are compressed; by default as their extension says."""
    settle: Duration = 0.0
    """Leave out files that were modified less than this long ago: they may not be complete."""
    on_changed: Literal["fail", "read"] = "fail"
    """What to do with a file that has changed between being found and being read: stop, since
    rows may be missing or come twice, or read it as it is."""
    on_missing: Literal["fail", "skip"] = "fail"
    """What to do with a file that has gone between being found and being read."""
    after: Literal["keep", "delete"] | Move = "keep"
    """What happens to a file whose rows have arrived: `keep`, `delete`, or `{move: DIRECTORY}`."""

    @model_validator(mode="after")
    def _fits(self) -> FilesSourceConfig:
        if self.tail and self.compression not in ("auto", "none"):
            raise ValueError("a compressed file cannot be read while it grows (tail)")
        if self.tail and self.after != "keep":
            raise ValueError("a file that grows (tail) is never done, so after must be keep")
        if not self.path:
            raise ValueError("path is an empty list")
        if isinstance(self.after, Move):
            paths = [self.path] if isinstance(self.path, str) else self.path
            if any(_scheme(path) != _scheme(self.after.move) for path in paths):
                raise ValueError(
                    "a file moves within its file system: after.move must be like path, "
                    "a URL for URLs and else a directory"
                )
        return self


def _scheme(path: str) -> str:
    return path.partition("://")[0].lower() if "://" in path else "file"


class Move(Config):
    """Where files go that have been read."""

    move: Place
    """The directory, on the same file system."""


FilesSourceConfig.model_rebuild()
