"""A document to a pipeline: its shape, its names, and what reads what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Environment
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import PenstockError, SpecError, raise_all
from penstock.spec.cases import cases
from penstock.spec.document import Document
from penstock.spec.foreign import OTHER_FILES, meant, right_names, unknown_key
from penstock.spec.load import assemble
from penstock.spec.models import PipelineSpec
from penstock.spec.nodes import Mapping, Scalar
from penstock.spec.overrides import Sets
from penstock.spec.translate import fit, translate
from penstock.spec.wiring import unused, wiring

__all__ = ["Pipeline", "fit", "open_pipeline", "read_pipeline", "translate", "validate"]

_MAY_BE_EMPTY = {
    "connections", "sources", "transforms", "sinks", "dead_letter", "runtime", "tests", "include",
}  # fmt: skip


@dataclass(frozen=True)
class Pipeline:
    """What the user wrote, known to have the right shape, with the places of all its parts."""

    spec: PipelineSpec
    document: Document
    warnings: tuple[SpecError, ...] = ()
    """What is likely not meant and yet runs."""

    @property
    def name(self) -> str:
        """What the file says, or else the file's own name."""
        if self.spec.name:
            return self.spec.name
        stem = Path(self.document.files[0]).name.split(".")[0]
        return re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_") or "pipeline"


def validate(document: Document) -> Pipeline:
    """The pipeline that a document is. Raises SpecError, or Mistakes with all that is wrong."""
    spec, mistakes = _inspect(document)
    raise_all(mistakes)
    assert spec is not None
    return Pipeline(spec, document, tuple(unused(document)))


def open_pipeline(
    paths: Sequence[str | Path],
    *,
    sets: Sets = (),
    env: Environment[str, str] | None = None,
) -> Pipeline:
    """`load` and `validate` in one go, so that the mistakes of both are told together."""
    pipeline, mistakes = read_pipeline(paths, sets=sets, env=env)
    raise_all(mistakes)
    assert pipeline is not None
    return pipeline


def read_pipeline(
    paths: Sequence[str | Path],
    *,
    sets: Sets = (),
    env: Environment[str, str] | None = None,
) -> tuple[Pipeline | None, list[PenstockError]]:
    """Like `open_pipeline`, with the mistakes beside the pipeline.

    None where it has no shape, or where values are missing that stand for others.
    """
    document, mistakes = assemble(paths, sets=sets, env=env)
    if document is None:
        return None, mistakes
    spec, wrong = _inspect(document)
    if spec is None or mistakes:
        return None, [*mistakes, *wrong]
    return Pipeline(spec, document, tuple(unused(document))), wrong


def _inspect(document: Document) -> tuple[PipelineSpec | None, list[PenstockError]]:
    strange = _strange(document)
    other = next((name for name in strange if name in OTHER_FILES), None)
    if other:
        return None, [unknown_key(document, other)]
    spec, wrong = fit(PipelineSpec, _data(document), document)
    return spec, [
        *(unknown_key(document, name) for name in strange),
        *wrong,
        *wiring(document, complete=_complete(document)),
        *_ends(document),
        *cases(document),
    ]


def _complete(document: Document) -> bool:
    """Whether all that can be read is there, so that a name that is not there is a mistake."""
    misnamed = {meant(document, name) for name in _strange(document)}
    sections = [document.root.get(section) for section in ("sources", "transforms")]
    usable = all(each is None or isinstance(each, Mapping) for each in sections)
    return bool(document.names("sources")) and usable and not misnamed & {"sources", "transforms"}


def _data(document: Document) -> dict[str, Any]:
    """Plain data, without top-level keys that are unknown or have nothing below them."""
    known = set(right_names())
    return {
        entry.name: entry.value.data()
        for entry in document.root.entries
        if entry.name in known
        and not (entry.name in _MAY_BE_EMPTY and _nothing(document, entry.name))
    }


def _nothing(document: Document, name: str) -> bool:
    node = document.root.get(name)
    return node is None or (isinstance(node, Scalar) and node.value is None)


def _strange(document: Document) -> list[str]:
    """The keys at the top that a pipeline does not have."""
    known = set(right_names())
    return [name for name in document.root.names() if name not in known]


def _ends(document: Document) -> Iterator[SpecError]:
    """A pipeline has a source and a sink; not told again where the key is merely misnamed."""
    misnamed = {meant(document, name) for name in _strange(document)}
    for section, noun in (("sources", "source"), ("sinks", "sink")):
        if _filled(document, section) or section in misnamed:
            continue
        there = document.root.entry(section) is not None
        yield SpecError(
            f"a pipeline needs at least one {noun}",
            code=f"no-{section}",
            where=document.key((section,)) if there else document.place,
            hint=f'"{section}" is empty' if there else f'add "{section}:"',
        )


def _filled(document: Document, section: str) -> bool:
    """Whether the section has nodes, or a mistake of its own that says why not."""
    node = document.root.get(section)
    if isinstance(node, Mapping):
        return bool(node.entries)
    return node is not None and not (isinstance(node, Scalar) and node.value is None)
