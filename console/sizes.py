"""Sizes of the built console, as browsers receive them, and their limits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

LIMITS = {"first page": 160.0, "style of the first page": 15.0, "editor": 150.0, "graph": 75.0}
"""The maximum size of each part in kB of gzip."""
PAGE = "src/pipeline/PipelinePage.tsx"
EDITOR = "src/pipeline/editor/EditorTab.tsx"
GRAPH = "src/pipeline/graph/Graph.tsx"
LANGUAGES = "node_modules/@codemirror/lang-"
Manifest = Mapping[str, Mapping[str, Any]]


def sizes(static: Path) -> dict[str, float]:
    """Returns the sizes of the parts of a built console, in kB.

    The editor has the syntax of its largest language. Parts that the page of a pipeline has in any
    case do not count for the editor and the graph.
    """
    manifest: Manifest = json.loads((static / "manifest.json").read_text())
    first = _files(manifest, ["index.html"])
    page = first | _files(manifest, [PAGE])
    languages = [_files(manifest, [name]) - page for name in manifest if LANGUAGES in name]
    editor = _files(manifest, [EDITOR]) - page
    return {
        "first page": _kilobytes(static, first, ".js"),
        "style of the first page": _kilobytes(static, first, ".css"),
        "editor": max(_kilobytes(static, editor | each, ".js") for each in languages),
        "graph": _kilobytes(static, _files(manifest, [GRAPH]) - page, ".js"),
    }


def excesses(static: Path) -> list[str]:
    """Returns a line for each part that is larger than its limit."""
    return [
        f"{part}: {size:.1f} kB of gzip, at most {LIMITS[part]:.0f}"
        for part, size in sizes(static).items()
        if size > LIMITS[part]
    ]


def _files(manifest: Manifest, names: Iterable[str]) -> set[str]:
    """Returns the files of chunks, and of those that they import at once."""
    found: set[str] = set()
    pending, seen = [*names], set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        chunk = manifest[name]
        found |= {chunk["file"], *chunk.get("css", ())}
        pending += chunk.get("imports", ())
    return found


def _kilobytes(static: Path, files: Iterable[str], suffix: str) -> float:
    chosen = (static / f"{name}.gz" for name in files if name.endswith(suffix))
    return sum(path.stat().st_size for path in chosen) / 1000
