from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from blocks import PAGES, Reader, alike, blocks

from command_line import CommandLine
from servers.server import free_port

ROOT = Path(__file__).parents[2]
MADE = shutil.ignore_patterns(".penstock", "out")


@pytest.mark.docs
@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, cli: CommandLine
) -> None:
    performed = [block for block in blocks(page) if "skip" not in block.options]
    text, environment = "".join(block.text for block in performed), {}
    if "KAFKA" in text:
        environment["KAFKA"] = request.getfixturevalue("own_kafka")().address
    if "PORT" in text:
        environment["PORT"] = str(free_port())
    if "$ penstock run examples/" in text:
        shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=MADE)
    with closing(Reader(tmp_path, cli, environment)) as reader:
        for block in performed:
            reader.perform(block)


def test_dots_stand_for_anything() -> None:
    assert alike("a ... c\n...\nz", "a b c  \n1\n2\nz\n")
    assert alike("...\na\n...", "a\n")
    assert not alike("a ... c", "a b d")
    assert not alike("a ... c", "a\nc")
