"""CONTRIBUTING.md's connector, written and run as the page says."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from blocks import Reader, blocks

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
pytestmark = [pytest.mark.docs, pytest.mark.spark]


def install(project: Path, site: Path) -> None:
    """What `pip install` does, without a network and without changing this environment."""
    site.mkdir()
    subprocess.run([sys.executable, "-c", BUILD, site], cwd=project, check=True, timeout=60)
    (wheel,) = site.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)


def test_a_connector_in_30_minutes(tmp_path: Path) -> None:
    project, site = tmp_path / "plugin", tmp_path / "site"
    project.mkdir()
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    with closing(Reader(project, {"PYTHONPATH": path})) as reader:
        for block in blocks(PAGE):
            if block.text.strip() == "pip install -e .":
                install(project, site)
            else:
                reader.perform(block)
