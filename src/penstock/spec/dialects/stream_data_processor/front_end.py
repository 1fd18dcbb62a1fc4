"""The front end of graphs of stream-data-processor: YAML and JSON with `producers`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.spec.dialects.options.reading import Findings
from penstock.spec.documents.files import read_text
from penstock.spec.front_end import DocumentFrontEnd
from penstock.spec.parsed import MissingParts
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import MappingNode
from penstock.spec.yaml.parse import read_document

_YAML = re.compile(r"""^["']?producers["']?[ \t]*:""", re.MULTILINE)
_JSON = re.compile(r"""\A\s*\{.*["']producers["']\s*:""", re.DOTALL)
_MISSING = MissingParts(others=True)


class StreamDataProcessorFrontEnd(DocumentFrontEnd):
    """The front end of graphs of stream-data-processor. It imports their reading on use."""

    hints = {"sources": "add a producer under producers", "sinks": "add a consumer under consumers"}

    def accepts(self, path: str) -> bool:
        """Returns whether a file has producers, by its content."""
        if Path(path).suffix.lower() not in {".yaml", ".yml", ".json"}:
            return False
        try:
            text = read_text(Path(path))
        except SpecError:
            return False
        return bool(_YAML.search(text) or _JSON.match(text))

    def read_document(self, path: str, where: Location | None = None) -> Document:
        """Returns the document of a file; see `DocumentFrontEnd.read_document`."""
        from penstock.spec.dialects.stream_data_processor.graph import to_pipeline

        document = read_document(path, where)
        findings = Findings()
        assert isinstance(document.root, MappingNode)
        return replace(
            document,
            root=to_pipeline(document.root, findings),
            errors=(*document.errors, *findings.errors),
            warnings=(*document.warnings, *findings.warnings),
            missing=_MISSING if findings.errors else document.missing,
        )
