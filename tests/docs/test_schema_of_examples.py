"""The JSON Schema accepts all templates, examples and pipelines that Penstock accepts."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from blocks import PAGES, blocks
from ruamel.yaml import YAML

from penstock.sdk import registry
from penstock.sdk.describe import describe
from penstock.sdk.registry import KINDS, Kind
from penstock.spec.schema import json_schema

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "src" / "penstock" / "cli" / "templates"
COMPONENTS = [(kind, type_) for kind in KINDS for type_ in registry.types(kind)]
FOLDERS = (TEMPLATES, ROOT / "examples", ROOT / "tests" / "golden" / "pipelines")
FILES = [path for folder in FOLDERS for path in sorted(folder.rglob("*.yaml"))]
WRONG_ON_PURPOSE = "wher:"
SECTIONS = ("connections", "sources", "transforms", "sinks")


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema.Draft202012Validator(json_schema(registry.schemas()))


def check(validator: Any, text: str) -> None:
    """Checks the sections of a pipeline file; a part of a file is complemented."""
    document = json.loads(json.dumps(YAML(typ="safe").load(text), default=str))
    document.setdefault("sources", {})
    document.setdefault("sinks", {})
    errors = [
        f"{'.'.join(map(str, error.absolute_path))}: {error.message[:500]}"
        for error in validator.iter_errors(document)
    ]
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pipeline(path: Path, validator: Any) -> None:
    check(validator, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("kind", "type_"), COMPONENTS)
def test_example_of_a_component(kind: Kind, type_: str, validator: Any) -> None:
    example = textwrap.indent(textwrap.dedent(describe(kind, type_).example or ""), "    ")
    if kind == "format":
        text = f"sources:\n  a:\n    type: files\n    path: x\n{example}"
    elif kind == "sink":
        above = "" if "from:" in example else "    from: b\n"
        text = f"sinks:\n  a:\n{above}{example}"
    else:
        text = f"{kind}s:\n  a:\n{example}"
    check(validator, text)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_pipelines_of_a_page(page: Path, validator: Any) -> None:
    for block in blocks(page):
        # The types of a plugin file and the text before a preprocessor are not in the schema.
        is_other = any(word in block.text for word in ("plugins:", "preprocess:", WRONG_ON_PURPOSE))
        if block.language != "yaml" or "dialect" in block.options or is_other:
            continue
        if any(f"{name}:" in block.text for name in SECTIONS):
            check(validator, block.text)
