"""Pipelines as YAML text."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence as List
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from penstock.core.errors import PenstockError, raise_all
from penstock.spec.documents.include import IncludeReader
from penstock.spec.documents.overlay import merge_files
from penstock.spec.tree.nodes import MappingNode, Node, SequenceNode

_ORDER = (
    "name", "description", "functions", "function_files", "connections", "sources", "transforms",
    "sinks", "dead_letter", "runtime", "tests",
)  # fmt: skip
_WIDTH = sys.maxsize
"""Long texts stay on one line: YAML would fold them."""
_LINE = re.compile(r"[ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*\Z")
"""A line that plain and single-quoted scalars can hold."""
_LINES = re.compile(r"(?!\t)[\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*\Z")
"""Lines that a literal block can hold."""


def convert(paths: List[str]) -> str:
    """Returns files and their includes as the YAML of one pipeline.

    Variables and secrets remain expressions. Comments are not kept. Raises SpecError or
    ValidationErrors.
    """
    reader = IncludeReader({})
    files = reader.read(paths)
    errors: list[PenstockError] = list(reader.errors)
    raise_all(errors)
    document, merge_errors = merge_files(files)
    raise_all(merge_errors)
    sections = {entry.name: to_data(entry.value) for entry in document.root.entries}
    ordered = [name for name in _ORDER if name in sections]
    others = [name for name in sections if name not in _ORDER]
    return to_text({name: sections[name] for name in [*ordered, *others]})


def to_data(node: Node) -> Any:
    """Returns plain data, with expressions and secrets as written."""
    if isinstance(node, MappingNode):
        return {styled_text(entry.name): to_data(entry.value) for entry in node.entries}
    if isinstance(node, SequenceNode):
        return [to_data(item) for item in node.items]
    value = node.written if node.secret else node.value
    return styled_text(str.__str__(value)) if isinstance(value, str) else value


def styled_text(text: str) -> str:
    """Returns a text with the style of YAML that holds it exactly."""
    if _LINE.match(text):
        return text
    is_block = "\n" in text and text.strip() and _LINES.match(text)
    scalar: str = LiteralScalarString(text) if is_block else DoubleQuotedScalarString(text)
    return scalar


def to_text(data: dict[str, Any]) -> str:
    """Returns plain data as YAML."""
    yaml = YAML(typ="rt", pure=True)
    yaml.version = (1, 2)
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue().removeprefix("%YAML 1.2\n---\n")
