"""README.md: the example is the one in examples/, and prints what the page says."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from blocks import Reader, blocks
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


@pytest.mark.docs
@pytest.mark.spark
def test_the_commands_print_what_the_page_says(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("out", ".penstock")
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "flights", ignore=ignored)
    dev = tmp_path / "dev"
    dev.write_text('#!/bin/sh\nexec penstock "$@"\n')
    dev.chmod(0o755)
    with closing(Reader(tmp_path)) as reader:
        for block in blocks(PAGE):
            reader.perform(block)
