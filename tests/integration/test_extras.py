"""Without extras there is no client, and each extra alone brings what its components import."""

from __future__ import annotations

import os
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest

from penstock.sdk import registry
from penstock.sdk.kit.registry import RegistryFormat

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
EXTRAS.pop("dev")
INSTALL = ("-m", "pip", "install", "--quiet", "--no-compile")
FOUND = [registry.find(k, name) for k in registry.KINDS for name in registry.types(k)]
COMPONENTS = [*FOUND, RegistryFormat]
_ALL = """
from penstock.sdk import registry
from penstock.sdk.kit.registry import RegistryFormat
found = [registry.find(k, name) for k in registry.KINDS for name in registry.types(k)]
print(*{each.extra for each in [*found, RegistryFormat]})
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with Penstock and no extra."""
    directory = tmp_path_factory.mktemp("bare")
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    run(python, *INSTALL, str(ROOT))
    return python


def run(python: Path, *arguments: str, path: Path | None = None) -> str:
    """What it prints; fails if it does."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(python), *arguments], capture_output=True, text=True, timeout=600, check=False,
        env=known | ({"PYTHONPATH": str(path)} if path else {}),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_components_are_found_without_their_clients(bare: Path) -> None:
    assert {*run(bare, "-c", _ALL).split()} - {"None"} == {*EXTRAS}


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_alone(bare: Path, tmp_path: Path, extra: str) -> None:
    clients = {name for each in COMPONENTS if each.extra == extra for name in each.clients}
    imports = "; ".join(f"import {client}" for client in clients)
    assert imports, "`clients` of the components are missing"
    with pytest.raises(AssertionError, match="ModuleNotFoundError"):
        run(bare, "-c", imports)
    run(bare, *INSTALL, "--target", str(tmp_path), *EXTRAS[extra])
    run(bare, "-c", imports, path=tmp_path)
