"""A package of plugins that is installed for a test, in its process and for Spark's workers."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest
from hatchling.build import build_wheel

from command_line import CommandLine
from penstock.core import plugins
from penstock.sdk import registry


@contextmanager
def installed(project: Path, cli: CommandLine) -> Iterator[None]:
    """Installs the package of a directory for the context, without a network."""
    assert cli.spark is not None
    site = project.with_name(f"{project.name}-site")
    site.mkdir()
    with chdir(project):
        wheel = build_wheel(str(site))
    with zipfile.ZipFile(site / wheel) as archive:
        archive.extractall(site)
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setitem(cli.spark.sparkContext.environment, "PYTHONPATH", path)
        _clear_entry_points()
        try:
            yield
        finally:
            patch.undo()
            _clear_entry_points()
            _remove_modules(site)


def _remove_modules(site: Path) -> None:
    for name, module in [*sys.modules.items()]:
        if Path(getattr(module, "__file__", None) or "").is_relative_to(site):
            del sys.modules[name]


def _clear_entry_points() -> None:
    registry.installed.cache_clear()
    registry.entries.cache_clear()
    plugins.entry_points.cache_clear()
