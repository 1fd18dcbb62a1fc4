from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from blocks import blocks
from ruamel.yaml import YAML

from penstock.sdk import Context, Source, registry
from penstock.sdk.describe import SHARED, describe
from penstock.sdk.registry import KINDS, Kind
from penstock.spec.documents.interpolate import Interpolator
from penstock.spec.yaml.parse import parse_document

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
COMPONENTS = [(kind, type_) for kind in KINDS for type_ in registry.types(kind)]


def test_the_reference_is_what_the_code_says() -> None:
    command = [sys.executable, ROOT / "docs" / "build.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("kind", "type_"), COMPONENTS)
def test_the_example_of_a_component_is_accepted(kind: Kind, type_: str) -> None:
    example = describe(kind, type_).example
    assert example, "the docstring has no example"
    node = YAML(typ="safe").load(textwrap.dedent(example))
    if kind == "format":
        node = node["format"] if isinstance(node["format"], dict) else {"type": node["format"]}
    assert node["type"] == type_
    shared = {f.alias or n for n, f in SHARED[kind].model_fields.items()} if kind in SHARED else ()
    given = {key: value for key, value in node.items() if key != "type" and key not in shared}
    component = registry.find(kind, type_)
    config = component.config_type.model_validate(given)
    if (metadata := node.get("metadata")) is not None:
        source = component.create(config, Context())
        assert isinstance(source, Source)
        names = metadata.values() if isinstance(metadata, dict) else metadata
        assert {*names} <= {*source.metadata_schema().names}
    if kind in SHARED:
        SHARED[kind].model_validate({"from": "somewhere", **node} if kind == "sink" else node)


@pytest.mark.parametrize(("kind", "type_"), COMPONENTS)
def test_variables_of_an_example_are_valid(kind: Kind, type_: str) -> None:
    interpolator = Interpolator({})
    interpolator.node(parse_document(textwrap.dedent(describe(kind, type_).example or "")).root)
    assert {error.code for error in interpolator.errors} <= {"unset-variable", "unknown-secret"}


def test_no_page_has_a_link_to_nowhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    for page in pages:
        without_code = re.sub(r"`[^`\n]*`", "", page.read_text())
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", without_code):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_options_of_blocks_are_known() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    for page in [*pages, *ROOT.glob("docs/howto/*.md")]:
        for block in blocks(page):
            unknown = block.options.keys() - {"title", "append", "exit", "shell", "skip", "dialect"}
            assert not unknown, f"{block.place}: {unknown}"
            assert "skip" not in block.options or block.options["skip"], f"{block.place}: why?"
