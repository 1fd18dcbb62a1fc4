"""From files to a pipeline: structure, names, and the graph of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.core.errors import PenstockError, SpecError
from penstock.spec.cases import check_cases
from penstock.spec.front_end import document_front_end, is_test_file
from penstock.spec.graph import check_graph
from penstock.spec.model_validation import validate_model
from penstock.spec.models import PipelineSpec
from penstock.spec.parsed import MissingParts, ParsedPipeline, Replacement
from penstock.spec.source_map import Route, SourceMap, find_map, whole_file
from penstock.spec.suggestions import (
    FOREIGN_KEYS,
    closest_section,
    top_level_keys,
    unknown_key_error,
)
from penstock.spec.unused import find_unused, reads_unknown_relations
from penstock.spec.valid_part import damaged_nodes, validate_part

_OPTIONAL_SECTIONS = {
    "connections", "sources", "transforms", "sinks", "dead_letter", "runtime", "tests", "include",
    "functions", "function_files", "plugins", "side_outputs",
}  # fmt: skip


@dataclass(frozen=True)
class Pipeline:
    """A pipeline, or the valid part of a pipeline with errors, with the locations of its parts."""

    spec: PipelineSpec
    source_map: SourceMap
    warnings: tuple[SpecError, ...] = ()
    """Likely errors that do not prevent a run."""
    damaged: frozenset[Route] = frozenset()
    """The routes of nodes and top-level values of which a part is wrong and missing in `spec`."""
    complete: bool = True
    """Whether the names of all sources and transforms are known."""
    files: tuple[str, ...] = ()
    """The files without their includes; `-` is standard input."""
    replacements: tuple[Replacement, ...] = ()
    """The options that a file replaces in an earlier file."""
    primary_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Primary keys that systems declare, by source. A source without such a key has no columns."""
    missing: MissingParts | None = None
    """The parts of the files that could not be read; None if all could."""

    @property
    def name(self) -> str:
        """The name in the file; the name of the file by default."""
        if self.spec.name:
            return self.spec.name
        stem = Path(self.source_map.files[0]).name.split(".")[0]
        return re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_") or "pipeline"


def validate(parsed: ParsedPipeline) -> tuple[Pipeline | None, list[PenstockError]]:
    """Returns the pipeline of parsed files, and all errors in the files.

    With errors the pipeline is the valid part; it is None if no part is valid.
    """
    source_map, data = parsed.source_map, parsed.data
    if source_map is None:
        return None, list(parsed.errors)
    foreign = next((name for name in _unknown_keys(data) if name in FOREIGN_KEYS), None)
    if foreign:
        return None, [*parsed.errors, unknown_key_error(source_map, foreign)]
    known = _known_sections(data)
    missing = parsed.missing
    complete = _is_complete(data, source_map) and not (missing and missing.others)
    spec, errors = validate_model(PipelineSpec, known, source_map)
    removed: frozenset[Route] = frozenset()
    if spec is None:
        spec, removed = validate_part(PipelineSpec, known)
    errors = [*errors, *_structure_errors(parsed, source_map, complete)]
    if spec is None:
        return None, [*parsed.errors, *errors]
    warnings = (*parsed.warnings, *find_unused(source_map))
    damaged = damaged_nodes(source_map, removed)
    pipeline = Pipeline(
        spec, source_map, warnings, damaged, complete, parsed.files,
        replacements=tuple(parsed.replacements), missing=missing,
    )  # fmt: skip
    return pipeline, [*parsed.errors, *errors]


def _structure_errors(
    parsed: ParsedPipeline, source_map: SourceMap, complete: bool
) -> Iterator[SpecError]:
    """Yields the errors of keys, names and inputs."""
    data, missing = parsed.data, parsed.missing
    yield from (unknown_key_error(source_map, name) for name in _unknown_keys(data))
    yield from check_graph(source_map, complete=complete, missing=missing)
    if missing is None:
        yield from _check_sections(data, source_map)
    yield from check_cases(source_map, missing)


def _is_complete(data: dict[str, Any], source_map: SourceMap) -> bool:
    """Returns whether the names of all sources and transforms are known."""
    misnamed = {closest_section(source_map, name) for name in _unknown_keys(data)}
    sections = [data.get(section) for section in ("sources", "transforms")]
    usable = all(section is None or isinstance(section, dict) for section in sections)
    has_sources = bool(find_map(source_map, ("sources",)))
    return (
        (has_sources or document_front_end(source_map.files[0]).has_queries_without_sources)
        and usable
        and not misnamed & {"sources", "transforms"}
    )


def _known_sections(data: dict[str, Any]) -> dict[str, Any]:
    """Returns the data without unknown top-level keys and without empty sections."""
    known = set(top_level_keys())
    return {
        name: value
        for name, value in data.items()
        if name in known and not (name in _OPTIONAL_SECTIONS and value is None)
    }


def _unknown_keys(data: dict[str, Any]) -> list[str]:
    known = set(top_level_keys())
    return [name for name in data if name not in known]


def _check_sections(data: dict[str, Any], source_map: SourceMap) -> Iterator[SpecError]:
    """Yields an error if there is no source or no sink, unless the section's key is misspelled.

    A query of a script without tables has an error of its own if it names a table. A test file
    without a pipeline has one error.
    """
    file = whole_file(source_map).file
    if is_test_file(file) and not any(map(data.get, ("sources", "transforms", "sinks"))):
        name = Path(file).stem.removesuffix(".test")
        yield SpecError(
            "the file has test cases and no pipeline",
            code="no-sources",
            where=whole_file(source_map),
            hint=f"name the pipeline instead, as in penstock test {name}.sql",
        )
        return
    front_end = document_front_end(source_map.files[0])
    misnamed = {closest_section(source_map, name) for name in _unknown_keys(data)}
    for section, noun in (("sources", "source"), ("sinks", "sink")):
        value = data.get(section)
        if (value is not None and value != {}) or section in misnamed:
            continue
        if (
            section == "sources"
            and front_end.has_queries_without_sources
            and reads_unknown_relations(source_map)
        ):
            continue
        exists = section in data
        hint = f'add a {noun} below "{section}:"' if exists else f'add "{section}:"'
        yield SpecError(
            f"a pipeline needs at least one {noun}",
            code="no-sources" if section == "sources" else "no-sinks",
            where=source_map.key((section,)) if exists else whole_file(source_map),
            hint=front_end.hints.get(section, hint),
        )
