"""The connector of the page for authors, written and run as the page says."""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from blocks import CONNECTOR_PAGE, Reader, blocks
from installed_package import installed

from command_line import CommandLine

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "src" / "penstock" / "connectors" / "kafka"


@pytest.mark.docs
@pytest.mark.spark
def test_a_connector_in_30_minutes(tmp_path: Path, cli: CommandLine) -> None:
    project = tmp_path / "plugin"
    project.mkdir()
    with ExitStack() as stack:
        reader = stack.enter_context(closing(Reader(project, cli)))
        for block in blocks(CONNECTOR_PAGE):
            if block.text.strip() == "pip install -e .":
                stack.enter_context(installed(project, cli))
            else:
                reader.perform(block)


def test_the_page_names_the_files_of_the_package() -> None:
    named = re.findall(
        r"^\| `(\w+\.py)` \|", CONNECTOR_PAGE.read_text().split("## 6.")[1], re.MULTILINE
    )
    there = {path.name for path in ROOM.glob("[!_]*.py")}
    assert set(named) == there and len(named) == len(there)


def test_shown_parts_of_files_are_in_the_files() -> None:
    prefix = "it stands in "
    shown = [
        block
        for block in blocks(CONNECTOR_PAGE)
        if block.options.get("skip", "").startswith(prefix)
    ]
    assert shown
    for block in shown:
        text = (ROOT / block.options["skip"].removeprefix(prefix)).read_text()
        assert block.text in text, block.place
