"""Imports of the package have no cycle, and importers are those of the docstrings of `engine`."""

from __future__ import annotations

import importlib
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

import penstock.engine

ENGINE = "penstock.engine."
PACKAGES = sorted(
    path.parent.name for path in Path(penstock.engine.__file__).parent.glob("*/__init__.py")
)
IMPORTERS = re.compile(r"Imported (?:by )?([^.]*)\.")


@cache
def imports() -> dict[str, set[str]]:
    """Returns the modules that each module imports, also those for type checkers only."""
    graph = grimp.build_graph("penstock", "pyspark_penstock", cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def part_of(module: str) -> str:
    """Returns the part of the engine, or the package outside of it, that has a module."""
    name = module.removeprefix(ENGINE)
    return name.removeprefix("penstock.").partition(".")[0]


@pytest.mark.slow
def test_no_cycle() -> None:
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_packages_of_the_engine_name_their_importers_and_the_first_file(package: str) -> None:
    module = importlib.import_module(ENGINE + package)
    text = " ".join((module.__doc__ or "").split())
    start = re.search(r"Start at `(\w+\.py)`", text)
    assert start is not None and Path(*module.__path__, start[1]).is_file()
    named = IMPORTERS.search(text)
    assert named is not None
    inside, _, outside = named[1].partition("from outside ")
    importers = {
        module for module, found in imports().items()
        if any(f"{each}.".startswith(f"{ENGINE}{package}.") for each in found)
    }  # fmt: skip
    actual = [
        {part_of(each) for each in importers if each.startswith(ENGINE) == within} - {package}
        for within in (True, False)
    ]
    for text, found in zip((inside, outside), actual, strict=True):
        if "packages above" not in named[1]:
            assert {*re.findall(r"`(\w+)`", text)} == found
