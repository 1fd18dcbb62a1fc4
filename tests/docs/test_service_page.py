"""The files of the page about services: the unit of systemd and the image."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "service.md"
pytestmark = pytest.mark.docs


def block(name: str) -> str:
    """Returns the file of a name in the page."""
    found = re.search(rf"```\w+ title={re.escape(name)}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found, name
    return found[1]


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is missing: install the package systemd")
    unit = tmp_path / "penstock.service"
    text = block("penstock.service")
    unit.write_text(text.replace("/opt/penstock/current/bin/penstock", sys.executable))
    answer = subprocess.run(
        [verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert "penstock.service" not in answer.stdout + answer.stderr, answer.stderr
    unit.write_text(text.replace("KillMode=process", "KillMode=none-of-them"))
    wrong = subprocess.run(
        [verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert "kill mode" in wrong.stdout + wrong.stderr
    assert "KillMode=process" in text, "runs would end with the server"


def test_the_image_starts_the_server_with_known_options(capsys: pytest.CaptureFixture[str]) -> None:
    from penstock.cli.main import main

    entry = re.search(r"^ENTRYPOINT (\[.*\])$", block("Dockerfile"), re.MULTILINE)
    assert entry
    words = re.findall(r'"([^"]+)"', entry[1])
    main(["serve", "--help"])
    known = capsys.readouterr().out
    assert [word for word in words if word.startswith("--") and word not in known] == []
    assert words[:2] == ["penstock", "serve"] and "--host" in words and "--insecure-http" in words
