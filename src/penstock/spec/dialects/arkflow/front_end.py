"""The front end of ArkFlow's files: YAML, JSON and TOML with `streams`."""

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

_YAML = re.compile(r"""^["']?(?:streams|jobs)["']?[ \t]*:""", re.MULTILINE)
_JSON = re.compile(r"""\A\s*\{(?:.*[\s,])?["']?(?:streams|jobs)["']?\s*:""", re.DOTALL)
_TOML = re.compile(r"^\s*(?:\[\[?\s*(?:streams|jobs)\s*\]\]?|streams\s*=)", re.MULTILINE)
_OWN = re.compile(r"""^["']?(?:sources|sinks|transforms)["']?[ \t]*:""", re.MULTILINE)


_MISSING = MissingParts(others=True)


class ArkflowFrontEnd(DocumentFrontEnd):
    """The front end of ArkFlow's files. It imports their reading on use."""

    hints = {
        "sources": "add a stream with an input under streams",
        "sinks": "add a stream with an output under streams",
    }

    def accepts(self, path: str) -> bool:
        """Returns whether a file has streams of ArkFlow, by its content."""
        suffix = Path(path).suffix.lower()
        if suffix not in {".yaml", ".yml", ".json", ".toml"}:
            return False
        try:
            text = read_text(Path(path))
        except SpecError:
            return False
        if suffix == ".toml":
            return bool(_TOML.search(text))
        if _OWN.search(text):
            return False
        return bool(_YAML.search(text) or _JSON.match(text))

    def read_document(self, path: str, where: Location | None = None) -> Document:
        """Returns the document of a file; see `DocumentFrontEnd.read_document`."""
        from penstock.spec.dialects.arkflow.pipeline import to_pipeline
        from penstock.spec.dialects.arkflow.references import with_references
        from penstock.spec.dialects.arkflow.toml import read_toml

        is_toml = Path(path).suffix.lower() == ".toml"
        document = read_toml(path, where) if is_toml else read_document(path, where)
        findings = Findings()
        root = with_references(document.root)
        assert isinstance(root, MappingNode)
        pipeline = to_pipeline(root, findings)
        if document.errors:
            findings.errors = [error for error in findings.errors if error.code != "no-sources"]
        return replace(
            document,
            root=pipeline,
            errors=(*document.errors, *findings.errors),
            warnings=(*document.warnings, *findings.warnings),
            missing=_MISSING if findings.errors else document.missing,
        )
