"""What the tests of deployments share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.cli.main import main


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """A command of `penstock` in this process: its exit code, output and errors."""

    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    return run
