"""Packages imported by a connector's module, measured in a process of its own."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from functools import cache

_BASE = (
    "penstock.sdk, penstock.sql.dialect.translate, pyarrow.compute, pyarrow.fs, numpy, "
    "rich.console, structlog, arro3.io, fastavro"
)
_PROGRAM = f"""
import json, os, sys, traceback
import {_BASE}
before = set(sys.modules)
known = {{name.partition(".")[0] for name in before}} | set(sys.stdlib_module_names)
for line in sys.stdin:
    module, sys.path[:] = json.loads(line)
    if os.fork() == 0:
        try:
            __import__(module)
            new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
            new -= known | {{module.partition(".")[0]}}
            print("imported", *sorted(name for name in new if not name.startswith("_")))
        except BaseException:
            print("failed", traceback.format_exc().replace(chr(10), " | "))
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


@cache
def imported_packages(module: str) -> list[str]:
    """Returns the packages imported by a module, except those that Penstock itself imports."""
    importer = _start_importer()
    assert importer.stdin is not None and importer.stdout is not None
    importer.stdin.write(f"{json.dumps([module, sys.path])}\n")
    importer.stdin.flush()
    outcome, *packages = importer.stdout.readline().split()
    assert outcome == "imported", f"import of {module} failed: {' '.join(packages)}"
    return packages


@cache
def _start_importer() -> subprocess.Popen[str]:
    """Starts a process with Penstock's imports, which forks a process for each module."""
    pipe = subprocess.PIPE
    importer = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdin=pipe, stdout=pipe, text=True
    )
    atexit.register(importer.kill)
    return importer
