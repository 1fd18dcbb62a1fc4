"""Pages for developers: the files, packages and steps that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock import app
from penstock.plan.model import Plan

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "penstock"
PAGES = ["CONTRIBUTING.md", "docs/architecture.md", "docs/howto/testing-penstock.md"]
ENTRIES_OF_THE_STATE = {"spool/QUERY/BATCH/", "dead_letters/"}
BUILT = (ROOT / ".gitignore").read_text().splitlines()
FILE = re.compile(r"`([\w./-]+(?:\.(?:py|md|toml)|/))`")
"""A file or a directory by itself. Other directories are in the middle of commands."""
IN_COMMAND = re.compile(r"(?<![\w/])(?:src|tests|docs|bench|examples)/[\w./-]+\w")


@pytest.mark.parametrize("page", PAGES)
def test_paths_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    # A part of the engine or the runtime is relative to the package that the table names.
    roots = [ROOT, SOURCE, SOURCE / "engine", SOURCE / "runtime"]
    paths = {*FILE.findall(text), *IN_COMMAND.findall(re.sub(r"\]\(.*?\)", "", text))}
    missing = {path for path in paths - ENTRIES_OF_THE_STATE if f"{path.rstrip('/')}/" not in BUILT}
    missing = {path for path in missing if not any((root / path).exists() for root in roots)}
    assert len(paths) > 5 and not missing, sorted(missing)


@pytest.mark.parametrize("package", ["", "engine/", "runtime/"])
def test_the_architecture_names_all_packages(package: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    names = {path.parent.name for path in (SOURCE / package).glob("*/__init__.py")}
    assert names and not {name for name in names if f"`{name}/`" not in text}


def test_steps_are_defined_in_their_files() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    steps = re.findall(r"^\| `(\w+)` \|.*\| `(\S+\.py)` \|$", text, re.MULTILINE)
    assert len(steps) == 6
    for name, path in steps:
        assert re.search(rf"^(?:def|class) {name}\b", (SOURCE / path).read_text(), re.MULTILINE)


def test_the_script_of_changes_has_the_plan_of_its_file(tmp_path: Path) -> None:
    """The files of a page that copies the changes of a table, as YAML and as SQL."""
    text = (ROOT / "docs" / "howto" / "databases.md").read_text()
    section = text.split("## Read the changes of a PostgreSQL table\n")[1].split("\n## ")[0]
    plans = []
    for language in ("yaml", "sql"):
        block = re.search(rf"^```{language} [^\n]*\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
        assert block is not None
        file = tmp_path / f"shop.{language}"
        file.write_text(block[1])
        plans.append(app.plan([file], env={"SHOP_PASSWORD": "made up"}))
    of_file, of_script = map(_meaning, plans)
    assert of_file == of_script
    assert [node[:3] for node in of_file[1]] == [
        ("orders", "source", "postgres"), ("copy", "sink", "sqlite")
    ]  # fmt: skip


def _meaning(plan: Plan) -> tuple[object, ...]:
    """Returns all of a plan but the texts and the places of its files."""
    nodes = [
        (
            node.name, node.kind, node.type, node.inputs, node.component.config,
            node.component.capabilities, node.primary_key, node.operation, node.unknown_key,
        )
        for node in plan.nodes.values()
    ]  # fmt: skip
    return plan.pipeline.name, nodes, plan.queries, plan.spec.runtime, plan.spec.sinks["copy"]
