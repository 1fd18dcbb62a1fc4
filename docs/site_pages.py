"""Pages of the documentation site: their sources, their order, and the links between them.

A page of the site is a Markdown file of the repository. Files that pages link to, such as examples
in YAML, are copied beside them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from textwrap import indent

ROOT = Path(__file__).resolve().parents[1]
START = "index.md"
Navigation = list[dict[str, "str | Navigation"]]

SECTIONS = {
    "Start": ("README.md", "docs/tutorial.md", "docs/sql-tutorial.md",
              "docs/console-tutorial.md", "docs/concepts.md"),
    "Pipelines": (
        "docs/howto/sql.md", "docs/howto/functions.md", "docs/howto/python.md",
        "docs/howto/scripts.md", "docs/howto/transforms.md", "docs/howto/ci.md",
    ),
    "Systems": (
        "docs/howto/files.md", "docs/howto/kafka.md", "docs/howto/messages.md",
        "docs/howto/databases.md", "docs/howto/changes.md", "docs/howto/lakes.md",
        "docs/howto/pyspark.md",
    ),
    "Operation": (
        "docs/howto/server.md", "docs/howto/service.md", "docs/howto/backup.md",
        "docs/howto/monitoring.md", "docs/howto/cluster.md",
        "docs/how-far-it-scales.md",
    ),
    "Other tools": (
        "docs/howto/arkflow.md", "docs/howto/arroyo.md", "docs/howto/control-planes.md",
        "docs/howto/streamling.md", "docs/howto/stream-data-processor.md",
    ),
    "Examples": (
        "examples/flights/README.md", "examples/clicks-kafka/README.md",
        "examples/cdc-postgres/README.md", "examples/nexmark/README.md",
    ),
    "Reference": (
        "docs/reference/pipeline.md", "docs/reference/connectors.md", "docs/reference/sources.md",
        "docs/reference/transforms.md", "docs/reference/sinks.md", "docs/reference/formats.md",
        "docs/reference/command-line.md", "docs/reference/api.md", "docs/reference/errors.md",
    ),
    "Development": (
        "docs/howto/connector.md", "docs/howto/plugins.md", "docs/reference/sdk.md",
        "CONTRIBUTING.md", "docs/architecture.md", "docs/howto/testing-penstock.md", "CHANGELOG.md",
    ),
}  # fmt: skip
"""The first pages of each section. `placed` adds all other pages of docs/ and examples/."""
REST = {"docs/howto": "Operation", "docs/reference": "Reference", "docs": "Start"}
"""The section of a page of docs/ that `SECTIONS` does not name, by its directory."""
TITLES = {"README.md": "Penstock"}

_LINK = re.compile(r"(!?\[[^\]]*\](?:\(|: ))([^)\s#]+)((?:#[^)\s]*)?)")
_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_INFO = re.compile(r"^( *(?:```+|~~~+))(\w*)(.*)$", re.MULTILINE)
_COMMENT = re.compile(r"^<!--.*?-->\n+", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """A page: its path in the repository, its path in the site, and its text with links there."""

    source: str
    path: str
    title: str
    text: str

    @property
    def url(self) -> str:
        """The address of the page, relative to the site."""
        return "" if self.path == START else f"{self.path.removesuffix('.md')}/"


def placed() -> dict[str, list[str]]:
    """Returns the sources of all pages by section. Raises ValueError for a missing page."""
    sections = {name: list(sources) for name, sources in SECTIONS.items()}
    named = {source for sources in sections.values() for source in sources}
    missing = sorted(source for source in named if not (ROOT / source).is_file())
    if missing:
        raise ValueError(f"docs/site_pages.py names pages that do not exist: {', '.join(missing)}")
    found = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/README.md")]
    for source in sorted(path.relative_to(ROOT).as_posix() for path in found):
        if source not in named:
            directory = str(PurePosixPath(source).parent)
            sections[REST.get(directory, "Examples")].append(source)
    return sections


def pages() -> tuple[list[Page], dict[str, Path]]:
    """Returns all pages in the order of the navigation, and the other files by their path."""
    sources = [source for section in placed().values() for source in section]
    paths = {source: site_path(source) for source in sources}
    files: dict[str, Path] = {}
    found = []
    for source in sources:
        text = _COMMENT.sub("", (ROOT / source).read_text())
        found.append(Page(source, paths[source], title_of(source, text),
                          _with_links(source, text, paths, files)))  # fmt: skip
    return found, files


def navigation() -> Navigation:
    """Returns the navigation of the generator: sections with their pages."""
    return [
        {section: [{title_of(source, (ROOT / source).read_text()): site_path(source)}
                   for source in sources]}
        for section, sources in placed().items()
    ]  # fmt: skip


def site_path(source: str) -> str:
    """Returns the path in the site: without docs/, and without the name README."""
    if source == "README.md":
        return START
    path = PurePosixPath(source)
    if path.name == "README.md":
        return f"{path.parent}.md"
    return str(path.relative_to("docs")) if path.parts[0] == "docs" else path.name.lower()


def title_of(source: str, text: str) -> str:
    """Returns the first heading of a page, without marks of code."""
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    if heading is None:
        raise ValueError(f"{source} has no heading")
    return TITLES.get(source) or heading[1].replace("`", "").strip()


def _with_links(source: str, text: str, paths: dict[str, str], files: dict[str, Path]) -> str:
    """Returns a text whose links lead to pages and files of the site. Adds files to `files`."""

    def link(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        if "://" in target or target.startswith(("mailto:", "/")):
            return match[0]
        named = os.path.normpath(PurePosixPath(source).parent / target)
        path = paths.get(named) or paths.get(f"{named}/README.md")
        if path is None and (ROOT / named).is_file():
            path = str(PurePosixPath(named).relative_to("docs")) if named[:5] == "docs/" else named
            files[path] = ROOT / named
        if path is None:
            return match[0]  # the generator reports it
        return before + os.path.relpath(path, PurePosixPath(paths[source]).parent) + after

    return "".join(
        _code(part) if is_code else _LINK.sub(link, part) for is_code, part in _parts(text)
    )


def _code(block: str) -> str:
    """Returns a code block for the generator, which reads blocks of lists indented by four."""
    block = _INFO.sub(_info, block, count=1)
    return indent(block, "  ") if block.startswith("  `") else block


def _info(match: re.Match[str]) -> str:
    """Returns the beginning of a code block: its language and the name of its file."""
    fence, language, rest = match.groups()
    title = re.search(r"title=(\S+)", rest)
    return fence + language + (f' title="{title[1]}"' if title else "")


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yields the code blocks of a text and the parts between them."""
    end = 0
    for block in _FENCE.finditer(text):
        yield False, text[end : block.start()]
        yield True, block[0]
        end = block.end()
    yield False, text[end:]
