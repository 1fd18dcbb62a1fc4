"""Templates of pipeline files, for `penstock new` and for new pipelines of a server."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

_FILES = files("penstock.templates")
_SUFFIX = ".yaml"
_FILE = "PIPELINE.yaml"
_TITLES = {
    "generate": "Made-up rows",
    "files": "CSV files to JSON lines",
    "sql": "Counts by minute",
    "nexmark": "Bids of auctions, in windows",
    "kafka": "From topic to topic",
    "clicks": "Clicks in Kafka, counted by minute",
    "changes": "Changes of a PostgreSQL table",
}
"""The title of each template, the simplest first."""


@dataclass(frozen=True)
class Template:
    """A template. `description` is its first comment, `systems` the systems that it needs."""

    name: str
    title: str
    description: str
    systems: tuple[str, ...]
    text: str


def template_names() -> list[str]:
    """Returns the names of the templates, the simplest first."""
    return [*_TITLES]


def read_template(name: str, file: str = _FILE) -> str:
    """Returns the text of a template. `file` is the name of the pipeline file in its comments."""
    return (_FILES / f"{name}{_SUFFIX}").read_text(encoding="utf-8").replace(_FILE, file)


def all_templates(file: str) -> list[Template]:
    """Returns the templates, the simplest first, with the name of the pipeline file."""
    return [_template(name, read_template(name, file)) for name in template_names()]


def _template(name: str, text: str) -> Template:
    comment = text.partition("\n#\n")[0].removeprefix("# ").replace("\n# ", " ")
    systems = tuple(each for each in ("kafka", "postgres") if f"type: {each}\n" in text)
    return Template(name, _TITLES[name], comment, systems, text)
