"""The package that `penstock new plugin` writes: its own tests pass as they are written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_connector_page import install

from penstock.cli.main import main


@pytest.mark.docs
@pytest.mark.spark
def test_the_tests_of_a_new_plugin_pass(tmp_path: Path) -> None:
    project, site = tmp_path / "rain_gauge", tmp_path / "site"
    assert main(["new", "plugin", "rain_gauge", "--output", str(project)]) == 0
    install(project, site)
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], cwd=project,
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_a_directory_with_files_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "plugin", "rain"]) == 0
    (tmp_path / "penstock-rain" / "pyproject.toml").write_text("mine")
    assert main(["new", "plugin", "rain"]) == 2
    assert (tmp_path / "penstock-rain" / "pyproject.toml").read_text() == "mine"
    assert main(["new", "plugin", "Rain-1"]) == 2
    assert main(["new", "plugin"]) == 2
    assert main(["new", "files", "x"]) == 2
    messages = capsys.readouterr().err
    assert "penstock-rain exists" in messages and '"Rain-1" is not the name' in messages
    assert "penstock new files --output x" in messages
