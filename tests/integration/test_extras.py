"""Without extras there is no client, and each extra alone brings what its components import.

Environments are directories of links to the packages of this environment: the wheel of Penstock
with all that it requires, or an extra with all that it requires.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from penstock.sdk import registry
from penstock.sdk.schema_registry import RegistryFormat

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: made for name, made in PROJECT["optional-dependencies"].items() if name != "dev"}
FOUND = [registry.find(k, name) for k in registry.KINDS for name in registry.types(k)]
COMPONENTS = [*FOUND, RegistryFormat]
WITHOUT_COMPONENTS = {
    "lsp": {"penstock.lsp.server"},
    "mcp": {"penstock.mcp.tools"},
    "object_state": {"obstore.store", "obstore.auth.boto3"},
    "object_store": {"obstore.store"},
    "otlp": {"penstock.observe.otlp.telemetry"},
    "server": {"penstock.server.server"},
    "streamling": {"xxhash", "Crypto.Hash.keccak"},
}
"""The modules that need the extras of no component."""
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
_ALL = """
from penstock.sdk import registry
from penstock.sdk.schema_registry import RegistryFormat
found = [registry.find(k, name) for k in registry.KINDS for name in registry.types(k)]
print(*{each.extra for each in [*found, RegistryFormat]})
"""
_MISSING = """
for extra, imports in IMPORTS.items():
    try:
        exec(imports)
    except ModuleNotFoundError:
        print(extra)
"""


def imports(extra: str) -> str:
    """Returns code that imports the clients of an extra."""
    found = {name for each in COMPONENTS if each.extra == extra for name in each.client_modules}
    clients = found or WITHOUT_COMPONENTS[extra]
    assert clients, "`clients` of the components are missing"
    return "; ".join(f"import {client}" for client in clients)


def required(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Returns the distributions that an installation of the requirements consists of, by name."""
    packages: dict[str, Distribution] = {}
    pending = [(Requirement(text), "") for text in requirements]
    seen = set()
    while pending:
        requirement, extra = pending.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        package = distribution(requirement.name)
        assert requirement.specifier.contains(package.version, prereleases=True), requirement
        packages[requirement.name] = package
        for name in {"", *requirement.extras}:
            if (requirement.name, name) not in seen:
                seen.add((requirement.name, name))
                pending += [(Requirement(text), name) for text in package.requires or ()]
    return packages


def link(packages: Iterable[Distribution], site: Path) -> None:
    """Makes a directory with links to the distributions' files; to whole packages if possible."""
    for package in packages:
        for path in package.files or ():
            if ".." in path.parts or "__pycache__" in path.parts:
                continue
            top = site / path.parts[0]
            if top.is_symlink():
                continue
            if Path(package.locate_file(path.parts[0]), "__init__.py").exists():
                top.symlink_to(str(package.locate_file(path.parts[0])))
                continue
            target = site / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.symlink_to(str(package.locate_file(path)))


def take_compiled(site: Path, names: Iterable[str]) -> None:
    """Copies the compiled modules of files that the wheel has unchanged from the checkout."""
    for name in names:
        source, file = ROOT / "src" / name, site / name
        compiled = Path(cache_from_source(str(source)))
        if compiled.exists() and source.read_bytes() == file.read_bytes():
            os.utime(file, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
            target = Path(cache_from_source(str(file)))
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(compiled, target)


def run(code: str, *sites: Path) -> str:
    """Runs code with the standard library and these directories. Returns its output."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=120,
        check=False, env={**known, "PYTHONPATH": os.pathsep.join(map(str, sites))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with Penstock and no extra."""
    site = tmp_path_factory.mktemp("bare")
    wheels = tmp_path_factory.mktemp("wheels")
    subprocess.run([sys.executable, "-c", BUILD, wheels], cwd=ROOT, check=True, timeout=120)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        take_compiled(site, archive.namelist())
    link(required(PROJECT["dependencies"]).values(), site)
    return site


def test_all_components_are_found_without_their_clients(bare: Path) -> None:
    assert {*run(_ALL, bare).split()} - {"None"} == {*EXTRAS} - {*WITHOUT_COMPONENTS}


def test_clients_are_missing_without_their_extras(bare: Path) -> None:
    code = f"IMPORTS = {dict(zip(EXTRAS, map(imports, EXTRAS), strict=True))}\n{_MISSING}"
    assert run(code, bare).split() == [*EXTRAS]


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_an_extra_alone(bare: Path, tmp_path: Path, extra: str) -> None:
    link(required(EXTRAS[extra]).values(), tmp_path)
    run(imports(extra), bare, tmp_path)
