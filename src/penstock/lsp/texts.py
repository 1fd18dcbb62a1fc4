"""The open texts of an editor: their paths, and those that are pipelines."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from penstock.language.document import Document
from penstock.spec.front_end import SCRIPT_SUFFIX

LANGUAGE = "penstock"
"""The identifier of the language of texts that are pipelines in any case."""
MAX_CHARACTERS = 2_000_000
_SECTION = re.compile(r"^[\"']?(?:sources|transforms|sinks)[\"']?\s*:", re.MULTILINE)
_SCRIPT = re.compile(r"\bconnector\s*['\"]?\s*=|^\s*INSERT\s+INTO\b", re.IGNORECASE | re.MULTILINE)
_MARK = re.compile(r"\s*(?:#|--)\s*penstock\b", re.IGNORECASE)


def document_of(text: TextDocument) -> Document:
    """Returns the text of an editor with the path of its file. An unsaved text needs no file."""
    path = to_fs_path(text.uri)
    if path is None or not text.uri.startswith("file:"):
        suffix = SCRIPT_SUFFIX if text.language_id == "sql" else ".yaml"
        name = Path(unquote(urlsplit(text.uri).path) or "untitled").name or "untitled"
        path = str(Path.cwd() / Path(name).with_suffix(suffix))
    return Document(Path(path), text.source)


def is_pipeline(text: TextDocument, document: Document) -> bool:
    """Returns whether a text is a pipeline, as far as it is written.

    It is one by its language, by a name such as `x.penstock.yaml`, by a first line with the comment
    `penstock`, or by its content. Editors also open YAML and SQL files of other programs.
    """
    if len(document.text) > MAX_CHARACTERS:
        return False
    is_named = document.path.stem.endswith(".penstock")
    if text.language_id == LANGUAGE or is_named or _MARK.match(document.text):
        return True
    pattern = _SCRIPT if document.path.suffix == SCRIPT_SUFFIX else _SECTION
    return pattern.search(document.text) is not None
