"""The wheel and the sdist have the built console, which is not in git."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from penstock.server.console.assets import INDEX, built_files, files_of_manifest, load_assets

ROOT = Path(__file__).parents[2]
STATIC = "penstock/server/console/static"
BUILD = "import sys; from hatchling.build import {0}; {0}(sys.argv[1])"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("built_console")]


def test_the_wheel_has_all_files_of_the_manifest(tmp_path: Path) -> None:
    with zipfile.ZipFile(_built("build_wheel", tmp_path)) as archive:
        archive.extractall(tmp_path / "site")
    static = tmp_path / "site" / STATIC
    named = files_of_manifest(static)
    assert named, "the manifest is empty"
    assert [path for path in named if not (static / path).is_file()] == []
    assets = load_assets(static)
    assert assets is not None
    assert {Path(path).name for path in named} <= set(assets.files)


def test_the_sdist_has_the_page_and_its_files(tmp_path: Path) -> None:
    with tarfile.open(_built("build_sdist", tmp_path)) as archive:
        names = {name.partition("/src/")[2] for name in archive.getnames()}
    named = {INDEX, *files_of_manifest(built_files())}
    assert {f"{STATIC}/{path}" for path in named} <= names


def _built(function: str, directory: Path) -> Path:
    command = [sys.executable, "-c", BUILD.format(function), str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120, capture_output=True)
    (archive,) = (*directory.glob("*.whl"), *directory.glob("*.tar.gz"))
    return archive
