from __future__ import annotations

from pathlib import Path

import pytest
from blocks import alike, blocks

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("howto/*.md")]
)
pytestmark = [pytest.mark.docs, pytest.mark.spark]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        block.perform(tmp_path)


def test_dots_stand_for_anything() -> None:
    assert alike("a ... c\n...\nz", "a b c  \n1\n2\nz\n")
    assert not alike("a ... c", "a b d")
