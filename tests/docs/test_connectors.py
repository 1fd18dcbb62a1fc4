"""The page of all connectors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.sdk import registry
from penstock.sdk.guarantees import guarantees

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "connectors.md"


def rows(kind: str) -> dict[str, list[str]]:
    """The cells of each row, by the type and its variant."""
    part = PAGE.read_text().partition(f"## {kind.title()}s\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| [")]
    return {", ".join(re.findall(r"`([^`]+)`", cells[0])): cells for cells in lines}


@pytest.mark.parametrize("kind", ["source", "sink"])
def test_each_variant_has_a_row_with_what_it_promises(kind: registry.Kind) -> None:
    found = rows(kind)
    expected = {
        ", ".join([type_, *filter(None, [each.variant])]): each
        for type_ in registry.types(kind)
        for each in guarantees(registry.find(kind, type_))
    }
    assert found.keys() == expected.keys()
    for name, said in expected.items():
        _, parallelism, guarantee, acknowledged, *_ = found[name]
        assert (parallelism, acknowledged) == (said.parallelism, said.acknowledged)
        assert guarantee.partition("[^")[0] == said.guarantee


def test_each_row_passes_the_contract() -> None:
    found = {**rows("source"), **rows("sink")}
    assert not [name for name, cells in found.items() if not cells[-1][0].isdigit()]


def test_footnotes() -> None:
    text = PAGE.read_text()
    footnotes = set(re.findall(r"^(\[\^\d+\]): \S", text, re.MULTILINE))
    assert footnotes and footnotes == set(re.findall(r"\[\^\d+\](?!:)", text))


def test_at_most_once_has_a_reason() -> None:
    for name, cells in rows("source").items():
        assert ("at most once" in cells[2]) == ("[^" in cells[2]), name
