"""Runs the failed tests of the last run once more, alone: python tests/rerun_failed.py.

Exits with 1 if more than `MOST` tests failed, if the collection failed, or if a test fails again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 3
_GROUP = re.compile(r"@[^@\[\]]+$")
"""The group of a test, which pytest-xdist adds to its node ID in the cache of pytest."""


def failed_tests(cached: str) -> list[str] | None:
    """Returns the node IDs of the failed tests of a run; None if its collection failed."""
    names = list(json.loads(cached))
    if not all("::" in name for name in names):
        return None
    return [_GROUP.sub("", name) for name in names]


def main() -> int:
    """Returns the exit code."""
    cache = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
    failed = failed_tests(cache.read_text())
    if failed is None or not 0 < len(failed) <= MOST:
        return 1
    print(f"{len(failed)} failed; run again, alone", flush=True)
    pytest = [sys.executable, "-m", "pytest", *failed]
    if subprocess.run(pytest, cwd=ROOT).returncode:
        return 1
    print(f"flaky: {len(failed)}, see the failures above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
