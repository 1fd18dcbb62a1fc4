"""Plugins of other packages that cannot be imported."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock import app
from penstock.core.errors import UserError, flatten_errors
from penstock.sdk import registry

PIPELINE = """
sources: {s: {type: memory, rows: [{id: 1}], lookup: true, schema: id INT, primary_key: [id]}}
sinks: {out: {type: blackhole, from: s, frmat: json}}
"""


class Package(NamedTuple):
    """An installed package."""

    name: str
    version: str


class Entry(EntryPoint):
    """An entry point of a package with a fault."""

    def load(self) -> Any:
        raise AttributeError("module 'other' has no attribute 'gone'")

    @property
    def dist(self) -> Any:
        return Package("penstock-other", "1.0")


@pytest.fixture(autouse=True)
def _broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = {kind: registry.entries(kind) for kind in registry.KINDS}

    def entries(kind: registry.Kind) -> dict[str, EntryPoint]:
        return {**known[kind], "other": Entry("other", "other:Gone", f"penstock.{kind}s")}

    monkeypatch.setattr(registry, "entries", entries)
    yield


def test_the_plugin_is_named_where_it_is_used() -> None:
    with pytest.raises(UserError) as caught:
        registry.find("source", "other")
    assert caught.value.code == "broken-plugin"
    assert caught.value.message.startswith(
        'the source "other" of the package penstock-other cannot be used: '
        f"AttributeError: module 'other' has no attribute 'gone' ({__file__}, line "
    )


def test_other_pipelines_are_checked(tmp_path: Path) -> None:
    """The errors of a file list the types with a property, and so import all of them."""
    (tmp_path / "p.yaml").write_text(PIPELINE)
    with pytest.raises(UserError) as caught:
        app.plan(tmp_path / "p.yaml")
    assert "broken-plugin" not in {error.code for error in flatten_errors(caught.value)}
    assert "memory" in dict(registry.importable("source"))
    assert "other" not in dict(registry.importable("source"))
