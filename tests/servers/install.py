"""What servers are made of, fetched once per machine into a cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

_APT = ("--no-install-recommends", "-o", "DPkg::Lock::Timeout=600")


def cache() -> Path:
    """The directory of all that is installed; PENSTOCK_SERVERS names another."""
    chosen = os.environ.get("PENSTOCK_SERVERS")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(chosen) if chosen else Path(base) / "penstock" / "servers"
    path.mkdir(parents=True, exist_ok=True)
    return path


def installed(name: str, fill: Callable[[Path], None]) -> Path:
    """The directory called `name`, filled by `fill` the first time, as a whole or not at all."""
    directory = cache() / name
    with _alone(name):
        if not directory.exists():
            part = cache() / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            print(f"installing {name} into {directory}: the first time only", file=sys.stderr)
            try:
                fill(part)
            except RuntimeError as error:
                unavailable(f"{name} could not be installed: {error}", "see there what is missing")
            part.rename(directory)
    return directory


def program(name: str, package: str) -> str:
    """The path of a program; root gets it from the system's packages if it is missing."""
    found = shutil.which(name)
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        with _alone("packages"), _no_services():
            run("apt-get", "update", "-q")
            run("apt-get", "install", "-qy", *_APT, package)
        found = shutil.which(name)
    if found is None:
        unavailable(f"{name} is not installed", f"install it, as in: sudo apt install {package}")
    return found


def install_package(requirement: str, target: Path) -> None:
    """Installs a Python package into a directory, with pip or, in an environment of uv, with uv."""
    if find_spec("pip") is not None:
        installer = [sys.executable, "-m", "pip", "install"]
    else:
        installer = ["uv", "pip", "install", "--python", sys.executable]
    run(*installer, "-q", "--target", str(target), requirement)


def run(*command: str, cwd: Path | None = None) -> None:
    """Runs a command that says why if it fails."""
    answer = subprocess.run(
        command, cwd=cwd, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if answer.returncode:
        said = "\n".join(answer.stdout.splitlines()[-10:])
        raise RuntimeError(f"`{' '.join(command)}` failed:\n{said}")


def unavailable(what: str, how: str) -> NoReturn:
    """Skips the test that needs the server, with the reason and the way out; fails it in CI."""
    message = f"{what}; {how}"
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@contextmanager
def _alone(name: str) -> Iterator[None]:
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _no_services() -> Iterator[None]:
    """Keeps Debian's packages from starting the servers that they bring."""
    policy = Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()
