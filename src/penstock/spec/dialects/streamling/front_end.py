"""The front end of Streamling's files: YAML and JSON with sources, transforms and sinks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from penstock.core.errors import SpecError, ValidationErrors
from penstock.core.location import Location
from penstock.spec.dialects.options.reading import Findings
from penstock.spec.dialects.streamling.words import may_be_streamling
from penstock.spec.documents.files import read_text
from penstock.spec.front_end import CHOICE, DocumentFrontEnd, is_test_file
from penstock.spec.parsed import MissingParts
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import MappingNode, ScalarNode, map_scalars
from penstock.spec.yaml.parse import parse_document

_MISSING = MissingParts(others=True)
NAME = "streamling"


class StreamlingFrontEnd(DocumentFrontEnd):
    """The front end of Streamling's files. It imports their reading on use."""

    hints = {
        "unread": "remove {node}, or connect it to a transform or a sink",
        "unknown-type": "write the plugin in Python, and set STREAMLING__PLUGIN__PATH to its file",
    }

    def accepts(self, path: str) -> bool:
        """Returns whether a node of a file has words that only Streamling has."""
        if Path(path).suffix.lower() not in {".yaml", ".yml", ".json"} or is_test_file(path):
            return False
        try:
            text = read_text(Path(path))
            if not may_be_streamling(text):
                return False
            from penstock.spec.dialects.streamling.recognition import is_streamling

            return is_streamling(parse_document(text, path).root)
        except (SpecError, ValidationErrors):
            return False

    def setting(self, name: str) -> str:
        from penstock.spec.dialects.streamling.settings import read_settings

        return read_settings(Findings(), Location("", 1, 1)).text(name)

    def read_document(self, path: str, where: Location | None = None) -> Document:
        """Returns the document of a file; see `DocumentFrontEnd.read_document`."""
        from penstock.spec.dialects.streamling.pipeline import to_pipeline
        from penstock.spec.dialects.streamling.preprocessors import preprocess
        from penstock.spec.dialects.streamling.recognition import is_ambiguous
        from penstock.spec.dialects.streamling.settings import read_settings

        findings, text = Findings(), read_text(Path(path), where)
        settings = read_settings(findings, Location(path, 1, 1))
        text = preprocess(text, path, settings, findings)
        document = parse_document(text, path, Path(path).absolute().parent)
        if CHOICE.get().language is None and is_ambiguous(document.root):
            findings.warn(
                "the file is read as one of Streamling", document.root.location,
                code="ambiguous-language",
                hint="run with --dialect streamling, or with --dialect yaml for Penstock's reading",
            )  # fmt: skip
        root = map_scalars(document.root, _literal)
        assert isinstance(root, MappingNode)
        pipeline = to_pipeline(root, settings, findings)
        if document.errors:
            # An option may be missing because it is in the part that could not be parsed.
            found = [error for error in findings.errors if error.code != "missing-option"]
            findings.errors[:] = found
        return replace(
            document,
            root=pipeline,
            errors=(*document.errors, *findings.errors),
            warnings=(*document.warnings, *findings.warnings),
            missing=_MISSING if findings.errors else document.missing,
        )


def _literal(node: ScalarNode) -> ScalarNode:
    """Returns a value in which `${` is text: files of Streamling have no variables."""
    if not isinstance(node.value, str) or "${" not in node.written:
        return node
    parts, origins = [], []
    for index, char in enumerate(node.written):
        if node.written.startswith("${", index):
            parts.append("$")
            origins.append(index)
        parts.append(char)
        origins.append(index)
    return node.derived("".join(parts), [*origins, len(node.written)])
