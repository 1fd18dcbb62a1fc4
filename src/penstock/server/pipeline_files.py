"""Files of pipelines: read and written within the directories of the server only."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from penstock.core.errors import StateError, UserError
from penstock.core.files.durable import rename_durably
from penstock.core.files.private_files import create_directory, open_private

MAX_BYTES = 4 * 1024 * 1024


class PipelineFiles:
    """The files of pipelines in several directories, and never those that a link leads to."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories

    def read(self, file: Path) -> str:
        """Returns the text of a file. Bytes that are not UTF-8 are replaced.

        Raises UserError for a link, a directory, a large file, and one that cannot be read.
        """
        self._check_inside(file)
        try:
            handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise _unreadable(file, error.strerror or "") from error
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _unreadable(file, "it is no file")
            with os.fdopen(handle, "rb", closefd=False) as opened:
                content = opened.read(MAX_BYTES + 1)
        except OSError as error:
            raise _unreadable(file, error.strerror or "") from error
        finally:
            os.close(handle)
        if len(content) > MAX_BYTES:
            raise _unreadable(file, f"it has more than {MAX_BYTES >> 20} MiB")
        return content.decode("utf-8", "replace")

    def write(self, file: Path, text: str) -> None:
        """Replaces a file atomically and durably, with the mode of the earlier one.

        Raises StateError, and leaves the earlier file, if it cannot be written.
        """
        hidden = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            create_directory(file.parent)
            self._check_inside(file)
            hidden.unlink(missing_ok=True)
            with open_private(hidden, "xb") as opened:
                opened.write(text.encode())
            with suppress(FileNotFoundError):
                hidden.chmod(stat.S_IMODE(file.lstat().st_mode) if file.is_file() else 0o600)
            rename_durably(hidden, file)
        except OSError as error:
            with suppress(OSError):
                hidden.unlink(missing_ok=True)
            raise StateError(
                f"the file {file.name} cannot be written: {error.strerror}",
                code="file-not-written",
                hint="Free space on the disk, or correct the rights of its directory.",
            ) from error  # fmt: skip

    def remove(self, file: Path) -> None:
        """Removes a file that may be missing. Raises StateError if that is not possible."""
        self._check_inside(file)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise StateError(
                f"the file {file.name} cannot be removed: {error.strerror}",
                code="file-not-written", hint="Correct the rights of its directory.",
            ) from error  # fmt: skip

    def _check_inside(self, file: Path) -> None:
        """Raises UserError if a link leads from the directory of a file to another one."""
        place = file.parent.resolve()
        for directory in self._directories:
            if file.is_relative_to(directory) and place.is_relative_to(directory.resolve()):
                return
        raise UserError(
            f"the file {file.name} is outside the directories of the server",
            code="outside-directory", hint="Replace links between directories by directories.",
        )  # fmt: skip


def _unreadable(file: Path, reason: str) -> UserError:
    return UserError(
        f"the file {file.name} cannot be read: {reason}", code="unreadable-file",
        hint="Restore the file, or delete the pipeline.",
    )  # fmt: skip
