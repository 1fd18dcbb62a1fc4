"""Top-level keys of other tools, and what they are called here."""

from __future__ import annotations

from penstock.core.errors import SpecError
from penstock.core.text import nearest
from penstock.spec.document import Document
from penstock.spec.fields import fields_at
from penstock.spec.models import PipelineSpec, Runtime
from penstock.spec.nodes import Mapping, Scalar

SECTIONS = {
    "input": "sources",
    "inputs": "sources",
    "readers": "sources",
    "output": "sinks",
    "outputs": "sinks",
    "destinations": "sinks",
    "targets": "sinks",
    "writers": "sinks",
    "pipeline": "transforms",
    "processors": "transforms",
    "steps": "transforms",
    "operators": "transforms",
    "views": "transforms",
    "queries": "transforms",
    "dlq": "dead_letter",
    "error_output": "dead_letter",
    "dead_letters": "dead_letter",
    "dead_letter_queue": "dead_letter",
    "config": "runtime",
    "settings": "runtime",
    "options": "runtime",
    "engine": "runtime",
    "imports": "include",
    "import": "include",
    "extends": "include",
    "title": "name",
    "id": "name",
}
OTHER_FILES = ("streams", "apiVersion")
"""Keys that say that the whole file is another tool's."""

_ADVICE = {
    "streams": 'an ArkFlow file: "penstock convert" prints it as a pipeline',
    "apiVersion": 'no Kubernetes object is needed: what is below "spec" stands at the top',
    "version": "a pipeline file has no version; remove it",
    "logging": "the command line sets the log: penstock run --log-level",
    "logger": "the command line sets the log: penstock run --log-level",
    "variables": "write ${NAME} in a value to read the environment",
    "vars": "write ${NAME} in a value to read the environment",
    "env": "write ${NAME} in a value to read the environment",
    "secrets": "write ${secret:file/NAME} in a value to read a secret",
}


def right_names() -> list[str]:
    """The keys at the top of a pipeline file."""
    return list(fields_at(PipelineSpec, ()))


def meant(document: Document, name: str) -> str | None:
    """The key that a wrong top-level key stands for."""
    known = SECTIONS.get(name.lower()) or nearest(name, right_names())
    return misplaced(document, name) or known


def misplaced(document: Document, name: str) -> str | None:
    """The empty section that an unknown map stands behind, as if it were below it."""
    section = None
    for entry in document.root.entries:
        if entry.name == name:
            return section if isinstance(entry.value, Mapping) else None
        if entry.name in right_names():
            empty = isinstance(entry.value, Scalar) and entry.value.value is None
            section = entry.name if empty else None
    return None


def unknown_key(document: Document, name: str) -> SpecError:
    """The mistake that the file has such a key at its top."""
    return SpecError(
        f'a pipeline has no key "{name}"',
        code="unknown-key",
        where=document.key((name,)),
        hint=_hint(document, name),
    )


def _hint(document: Document, name: str) -> str:
    if section := misplaced(document, name):
        return f'indent it, so that it is below "{section}"'
    if name in _ADVICE:
        return _ADVICE[name]
    if name.lower() in SECTIONS:
        return f'here it is called "{SECTIONS[name.lower()]}"'
    if near := nearest(name, right_names()):
        return f'did you mean "{near}"?'
    if name in fields_at(Runtime, ()):
        return 'it belongs under "runtime"'
    return f"known: {', '.join(right_names())}"
