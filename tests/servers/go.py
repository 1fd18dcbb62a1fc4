"""Modules and programs of Go. The packages that a build has compiled are kept for other builds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from servers.install import cache, program, run

_MODULES = "modules"


def fetch_module(path: str, version: str, part: Path) -> Path:
    """Moves the files of a module to a directory in `part`. Returns the directory."""
    _go(part, "mod", "download", f"{path}@{version}", cwd=part)
    escaped = re.sub("[A-Z]", lambda upper: f"!{upper[0].lower()}", path)
    module = (part / _MODULES / f"{escaped}@{version}").rename(part / "module")
    shutil.rmtree(part / _MODULES)
    return module


def build(source: Path, part: Path, *options: str) -> None:
    """Builds a program in `part`, and removes its source. `options` name the program."""
    _go(part, "build", "-o", f"{part}/", *options, cwd=source)
    for directory in (part / _MODULES, source):
        shutil.rmtree(directory)


def _go(part: Path, *arguments: str, cwd: Path) -> None:
    settings = (
        f"GOMODCACHE={part / _MODULES}", f"GOCACHE={cache() / 'go-objects'}", "CGO_ENABLED=0",
        "GOFLAGS=-mod=mod -modcacherw -trimpath -ldflags=-s",
    )  # fmt: skip
    run("env", *settings, program("go", "golang-go"), *arguments, cwd=cwd)
