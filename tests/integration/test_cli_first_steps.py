"""`penstock quickstart` and `penstock doctor`: the first commands of a new user."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import CommandLine
from penstock.core.cache import cache_directory
from terminal import penstock

pytestmark = pytest.mark.spark


def test_quickstart_shows_rows_and_leaves_nothing(tmp_path: Path, cli: CommandLine) -> None:
    done = cli(tmp_path, "quickstart")
    assert done.returncode == 0, done.stderr
    assert "type: generate" in done.stdout
    assert any(line.startswith('{"id":') for line in done.stdout.splitlines())
    assert "penstock new files > pipeline.yaml" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_quickstart_that_is_kept_can_be_run(tmp_path: Path, cli: CommandLine) -> None:
    kept = cli(tmp_path, "quickstart", "--keep", "first")
    assert kept.returncode == 0, kept.stderr
    assert cli(tmp_path, "status", "first/quickstart.yaml").returncode == 0
    again = cli(tmp_path, "quickstart", "--keep", "first")
    assert again.returncode == 2
    assert "error[file-exists]" in again.stderr


def test_doctor_starts_spark(tmp_path: Path, cli: CommandLine) -> None:
    done = cli(tmp_path, "doctor", "--json")
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["session"]["state"] == "ok", found["session"]


def test_doctor_sees_to_the_class_cache(tmp_path: Path) -> None:
    done = penstock(tmp_path, "doctor", "--cache")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("ok   class cache     "), done.stdout
    assert list(cache_directory().glob("classes/*/seal.json"))


def test_doctor_says_that_there_can_be_no_class_cache(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "classes").touch()
    done = cli(tmp_path, "doctor", "--cache", environment={"PENSTOCK_CACHE": str(tmp_path)})
    assert done.returncode == 1
    assert f"could not be built in {tmp_path}" in done.stdout, done.stdout
