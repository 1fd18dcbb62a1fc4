"""YAML files and texts to trees with locations. YAML 1.2; every error is a SpecError."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.core.errors import SpecError, ValidationErrors, raise_all
from penstock.core.location import Location
from penstock.spec.documents.files import STANDARD_INPUT, read_standard_input, read_text
from penstock.spec.front_end import is_test_file
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import (
    File,
    MappingNode,
    ScalarNode,
    SequenceNode,
)  # fmt: skip
from penstock.spec.yaml.recovery import compose_valid_part

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
        return parse_document(read_standard_input(), STANDARD_INPUT)
    text = read_text(Path(path), where)
    return parse_document(text, str(path), Path(path).absolute().parent)
