"""YAML files and texts to trees with locations. YAML 1.2; every error is a SpecError."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from penstock.core.errors import SpecError, ValidationErrors, raise_all
from penstock.core.files.pipes import open_without_waiting
from penstock.core.files.regular_files import check_regular_file
from penstock.core.location import Location
from penstock.core.text import nearest_file
from penstock.spec.front_end import is_test_file
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import (
    File,
    MappingNode,
    ScalarNode,
    SequenceNode,
)  # fmt: skip
from penstock.spec.yaml.recovery import compose_valid_part

MAX_BYTES = 10 * 1024 * 1024
_STATEMENT = re.compile(
    r"(?:\s|--[^\n]*\n)*"
    r"(?P<word>(?:CREATE|INSERT|SELECT|SET|WITH|USE|DROP)[ \t\n]+[^\s:#]+)(?!\s*:)",
    re.IGNORECASE,
)
"""The start of a SQL script."""


def parse_document(text: str, name: str = "<text>", base: Path | None = None) -> Document:
    """Returns the document of a text; messages use `name` as the name of the file.

    Syntax errors beside valid sections or entries, and keys that occur twice, are `errors` of the
    document. Raises SpecError or ValidationErrors.
    """
    file = File(name, text.removeprefix("\ufeff"), base or Path.cwd())
    try:
        part = compose_valid_part(file)
    except (SpecError, ValidationErrors) as error:
        raise _script_error(file) or error from None
    root = part.root
    if part.missing is not None and not isinstance(root, MappingNode):
        raise_all(part.errors)
    if root is None or (isinstance(root, ScalarNode) and not root.written):
        raise SpecError(
            "the file is empty",
            code="empty-file",
            where=Location(name, 1, 1),
            hint='add "tests:" with test cases, or remove the file'
            if is_test_file(name)
            else "add sources, transforms and sinks",
        )
    if not isinstance(root, MappingNode):
        kind = "a list" if isinstance(root, SequenceNode) else "text"
        raise _script_error(file) or SpecError(
            f"expected a map of sources, transforms and sinks, found {kind}",
            code="not-a-map",
            where=root.location,
        )
    return Document(root, (name,), errors=part.errors, missing=part.missing)


def _script_error(file: File) -> SpecError | None:
    """Returns the error of a SQL script whose file has another suffix; None for other texts."""
    match = _STATEMENT.match(file.text)
    if match is None:
        return None
    return SpecError(
        "expected a map of sources, transforms and sinks, found SQL",
        code="not-a-map",
        where=file.location(match.start("word"), match.end("word")),
        hint="give the file of a SQL script a name that ends in .sql",
    )


def read_document(path: str | Path, where: Location | None = None) -> Document:
    """Returns the document of a file; `-` is standard input.

    `where` is the location that refers to the file. Raises SpecError or ValidationErrors.
    """
    if str(path) == "-":
        return parse_document(_decode(sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>"), "<stdin>")
    text = read_text(Path(path), where)
    return parse_document(text, str(path), Path(path).absolute().parent)


def read_text(path: Path, where: Location | None = None) -> str:
    """Returns the text of a file, to which the location `where` refers. Raises SpecError."""
    return _decode(_bytes(path, where), str(path))


def _bytes(path: Path, where: Location | None) -> bytes:
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
    """Returns the error of a file that does not exist, with the nearest name in its directory."""
    hint = None
    if not path.parent.is_dir():
        hint = f"create the directory {path.parent}, or correct the name"
    else:
        name = nearest_file(path.name, (file.name for file in path.parent.iterdir()))
        hint = f'did you mean "{path.parent / name}"?' if name else None
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
