"""The connector of the page for authors, written and run as the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from blocks import CONNECTOR_PAGE, Reader, blocks

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "src" / "penstock" / "connectors" / "kafka"
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"


def install(project: Path, site: Path) -> None:
    """What `pip install` does, without a network and without changing this environment."""
    site.mkdir()
    subprocess.run([sys.executable, "-c", BUILD, site], cwd=project, check=True, timeout=60)
    (wheel,) = site.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)


@pytest.mark.docs
@pytest.mark.spark
def test_a_connector_in_30_minutes(tmp_path: Path) -> None:
    project, site = tmp_path / "plugin", tmp_path / "site"
    project.mkdir()
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    with closing(Reader(project, {"PYTHONPATH": path})) as reader:
        for block in blocks(CONNECTOR_PAGE):
            if block.text.strip() == "pip install -e .":
                install(project, site)
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
