"""The text of pipeline files and of standard input. Every error is a SpecError.

An editor has texts that are not saved: `unsaved` lets them take the place of the files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from penstock.core.errors import SpecError
from penstock.core.files.pipes import open_without_waiting
from penstock.core.files.regular_files import check_regular_file
from penstock.core.location import Location
from penstock.core.text import nearest_file
from penstock.spec.preprocessing import preprocess
from penstock.spec.tree.nodes import File

MAX_BYTES = 10 * 1024 * 1024
STANDARD_INPUT = "<stdin>"


_MAX_NAMES = 3
"""The maximum number of files that a hint names."""
_NOTHING: Mapping[Path, str] = {}
_UNSAVED: ContextVar[Mapping[Path, str]] = ContextVar("_UNSAVED", default=_NOTHING)


@contextmanager
def unsaved(texts: Mapping[Path, str]) -> Iterator[None]:
    """Reads these texts in place of the files of the paths, which need not exist."""
    token = _UNSAVED.set({path.absolute(): text for path, text in texts.items()})
    try:
        yield
    finally:
        _UNSAVED.reset(token)


def read_standard_input() -> str:
    """Returns the text of standard input after its preprocessors. Raises SpecError."""
    text = _decode(sys.stdin.buffer.read(MAX_BYTES + 1), STANDARD_INPUT)
    return preprocess(text, STANDARD_INPUT, Path.cwd())


def read_text(path: Path, where: Location | None = None) -> str:
    """Returns the text of a file after its preprocessors. Raises SpecError.

    `where` is the location that refers to the file.
    """
    return preprocess(_decode(_bytes(path, where), str(path)), str(path), path.absolute().parent)


def read_unprocessed(path: Path) -> str:
    """Returns the text of a file as it is written, before its preprocessors. Raises SpecError."""
    return _decode(_bytes(path, None), str(path))


def _bytes(path: Path, where: Location | None) -> bytes:
    text = _UNSAVED.get().get(path.absolute())
    if text is not None:
        return text.encode()
    if path.is_dir():
        raise SpecError(
            f"{path} is a directory",
            code="not-a-file",
            where=where,
            hint=f"name a file in the directory, or all files: {path / '*.yaml'}",
        )
    try:
        if where is not None:
            check_regular_file(path)
        with open_without_waiting(path) as stream:
            data = stream.read(MAX_BYTES + 1)
        if not data and path.is_fifo():
            raise SpecError(
                f"expected a file, found the named pipe {path} without data",
                code="not-a-file",
                where=where,
                hint="pass a regular file, or - for standard input",
            )
        return data
    except FileNotFoundError:
        raise missing_file_error(path, where) from None
    except OSError as error:
        raise SpecError(
            f"cannot read {path}: {error.strerror}", code="unreadable-file", where=where
        ) from None


def missing_file_error(path: Path, where: Location | None = None) -> SpecError:
    """Returns the error of a file that does not exist.

    The hint has the nearest name in its directory, or else the few files of the same suffix.
    """
    hint = None
    if not path.parent.is_dir():
        hint = f"create the directory {path.parent}, or correct the name"
    else:
        files = list(path.parent.iterdir())
        similar = sorted(file for file in files if file.suffix == path.suffix and path.suffix)
        if name := nearest_file(path.name, (file.name for file in files)):
            hint = f'did you mean "{path.parent / name}"?'
        elif 0 < len(similar) <= _MAX_NAMES:
            hint = "pass " + " or ".join(map(str, similar))
    return SpecError(f"the file {path} does not exist", code="missing-file", where=where, hint=hint)


def _decode(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise SpecError(
            f"{name} is larger than {MAX_BYTES // 2**20} MB",
            code="file-too-large",
            where=Location(name, 1, 1),
            hint="move data to another file",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        location = File(name, before, Path()).location(len(before))
        utf16 = data[:2] in {b"\xff\xfe", b"\xfe\xff"}
        raise SpecError(
            f"the file is not UTF-8: byte 0x{data[error.start]:02X}",
            code="not-utf8",
            where=Location(name, location.line, location.column),
            hint="save the file as UTF-8 instead of UTF-16" if utf16 else "save the file as UTF-8",
        ) from None
