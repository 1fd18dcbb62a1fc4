"""The package that `penstock new plugin` writes: its own tests pass as they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_this_process import run_pytest
from installed_package import installed

from command_line import CommandLine
from penstock.cli.main import main


@pytest.mark.docs
@pytest.mark.spark
def test_the_tests_of_a_new_plugin_pass(tmp_path: Path, cli: CommandLine) -> None:
    project = tmp_path / "rain_gauge"
    assert main(["new", "plugin", "rain_gauge", "--output", str(project)]) == 0
    with installed(project, cli):
        done = run_pytest(["-q", "tests"], project, cli)
    assert done.returncode == 0, done.stdout
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
