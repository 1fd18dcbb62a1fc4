"""Descriptions and explanations on a terminal of 80 columns."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.sdk import registry

FLIGHTS = Path(__file__).parents[3] / "examples/flights/late-flights.yaml"


class TerminalOutput(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    output = TerminalOutput()
    monkeypatch.setattr("sys.stdout", output)
    assert main(words) == 0
    return output.getvalue()


@pytest.fixture(autouse=True)
def _columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


def too_wide(text: str) -> list[str]:
    """Returns the lines with more than one word that are wider than 80 columns."""
    return [line for line in text.splitlines() if len(line) > 80 and " " in line.strip()]


@pytest.mark.quick(20)
@pytest.mark.parametrize(
    "words", [(kind, type_) for kind in registry.KINDS for type_ in registry.types(kind)]
)
def test_descriptions_have_whole_words_on_short_lines(
    words: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(monkeypatch, "describe", *words)
    example = text.find("\nexample\n")
    assert not too_wide(text[:example] if example >= 0 else text)
    assert "\u2026" not in text


@pytest.mark.slow
def test_explanations_have_whole_words_on_short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, "explain", str(FLIGHTS), "--static").splitlines()
    without_path = [line for line in lines if str(FLIGHTS.parent) not in line]
    assert not too_wide("\n".join(without_path))
