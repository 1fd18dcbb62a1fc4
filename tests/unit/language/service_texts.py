"""Texts with the mark `|~` at the cursor, and answers of the service there."""

from __future__ import annotations

from pathlib import Path

from penstock.language import service
from penstock.language.document import Document
from penstock.language.model import Completion, Position

YAML, SQL = Path("/nowhere/shop.yaml"), Path("/nowhere/shop.sql")
SOURCES = """\
sources:
  orders: {type: files, path: x, schema: "id INT, customer STRING, at TIMESTAMP"}
  names: {type: files, path: y, schema: "customer STRING, name STRING", static: true}
"""


def place(text: str, path: Path = YAML) -> tuple[Document, Position]:
    """Returns the text without its mark, and the position of the mark."""
    before, _, after = text.partition("|~")
    document = Document(path, before + after)
    return document, document.position(len(before))


def complete(text: str, path: Path = YAML) -> list[Completion]:
    return [*service.complete(*place(text, path)).items]


def labels(text: str, path: Path = YAML) -> list[str]:
    return [item.label for item in complete(text, path)]


def completed(text: str, label: str, path: Path = YAML) -> str:
    """Returns the text after a proposal is accepted."""
    document, position = place(text, path)
    found = service.complete(document, position)
    item = next(each for each in found.items if each.label == label)
    start, end = document.index(found.range.start), document.index(found.range.end)
    return document.text[:start] + item.text + document.text[end:]


def hover(text: str, path: Path = YAML) -> str:
    found = service.hover(*place(text, path))
    return found.text if found else ""
