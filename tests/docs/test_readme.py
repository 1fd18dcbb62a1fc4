"""README.md: the example is the one in examples/. test_flights.py runs it as the page says."""

from __future__ import annotations

from pathlib import Path

from blocks import blocks
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "README.md"
EXAMPLE = ROOT / "examples" / "flights"


def test_the_pipeline_is_a_part_of_the_example() -> None:
    load = YAML(typ="safe").load
    (shown,) = (load(block.text) for block in blocks(PAGE) if block.language == "yaml")
    whole = load(EXAMPLE / "late-flights.yaml")
    for kind in ("sources", "transforms", "sinks"):
        assert shown[kind].items() <= whole[kind].items()
