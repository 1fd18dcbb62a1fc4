"""The front end of YAML files, and of files that no other front end accepts."""

from __future__ import annotations

from pathlib import Path

from penstock.core.location import Location
from penstock.spec.front_end import DocumentFrontEnd
from penstock.spec.tree.document import Document
from penstock.spec.yaml.parse import read_document

SUFFIXES = {".yaml", ".yml", ".json"}


class YamlFrontEnd(DocumentFrontEnd):
    """The front end of YAML files and of JSON files, which are YAML."""

    replaces_options = True

    def accepts(self, path: str) -> bool:
        """Returns whether the suffix is one of YAML or JSON; `-` is YAML."""
        return path == "-" or Path(path).suffix in SUFFIXES

    def read_document(self, path: str, where: Location | None = None) -> Document:
        """Returns the document of a file; see `DocumentFrontEnd.read_document`."""
        return read_document(path, where)
