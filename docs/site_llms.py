"""Documentation for language models: `llms.txt` with links to pages, `llms-full.txt` with texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from site_pages import Page, placed

_BASE = "/docs/"


def llms(pages: Sequence[Page]) -> str:
    """Returns the title, the first paragraph, and a list of all pages with their first sentence."""
    by_source = {page.source: page for page in pages}
    start = by_source["README.md"]
    text = f"# {start.title}\n\n> {first_paragraph(start.text)}\n"
    text += f"\nThe text of all pages is in [llms-full.txt]({_BASE}llms-full.txt).\n"
    for section, sources in placed().items():
        text += f"\n## {section}\n\n"
        for page in (by_source[source] for source in sources):
            text += f"- [{page.title}]({_BASE}{page.url}): {summary(page.text)}\n"
    return text


def llms_full(pages: Sequence[Page]) -> str:
    """Returns the texts of all pages, each below its address."""
    return "\n".join(f"<!-- {_BASE}{page.url} -->\n\n{page.text.strip()}\n" for page in pages)


def summary(text: str) -> str:
    """Returns the first sentence of a page, without links."""
    sentence = re.match(r".+?[.:](?=\s|$)", first_paragraph(text))
    return sentence[0] if sentence else first_paragraph(text)


def first_paragraph(text: str) -> str:
    """Returns the first paragraph below the heading, in one line and without links."""
    for block in text.split("\n\n"):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
        if plain and not plain.startswith(("#", "```", "|", "<", "!")):
            return plain
    return ""
