"""Plants the faults of the register one by one, and runs the test that should find each of them.

    python tests/faults/run.py [--only NAME] [--jobs N]

A fault is planted in a copy of `src/`, which the tests import in place of the checkout. All tests
run once without a fault before: a test that fails then finds nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

sys.path.insert(0, str(Path(__file__).parent))

from register import ROOT, SOURCE, Fault, RegisterError, faults

Outcome = Literal["found", "not found", "error"]
_TIME_LIMIT = 300.0
"""The time limit in seconds, with the start of Spark. Each test adds five seconds."""
_UNUSED_PLUGINS = ("anyio", "cacheprovider", "hypothesispytest")
"""Plugins of pytest that take more time than most of the tests."""
_PASSED, _FAILED = 0, 1
"""Exit codes of pytest."""


@dataclass(frozen=True)
class Result:
    """The outcome of a fault, with a reason if the fault was not found."""

    fault: Fault
    outcome: Outcome
    seconds: float
    reason: str = ""

    def __str__(self) -> str:
        line = f"{self.outcome:9}  {self.seconds:5.1f} s  {self.fault.name}"
        return f"{line}\n    {self.reason}" if self.reason else line


@contextmanager
def copied_source() -> Iterator[Path]:
    """Copies `src/` with its compiled modules to a temporary directory."""
    with TemporaryDirectory(prefix="penstock-fault-") as directory:
        # Symbolic links in the path of the copy would differ from the files of its modules.
        source = Path(directory).resolve() / "src"
        shutil.copytree(SOURCE, source)
        yield source


def run_tests(source: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs tests with the modules of a copy. Raises TimeoutExpired."""
    path = os.pathsep.join((str(source), str(Path(__file__).parent)))
    command = [
        sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT),
        "-p", "loaded_copy", *(f"-pno:{name}" for name in _UNUSED_PLUGINS),
        "-q", "-x", "--tb=line", *tests,
    ]  # fmt: skip
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PLANTED_SOURCE": str(source)},
        capture_output=True,
        text=True,
        timeout=_TIME_LIMIT + 5 * len(tests),
    )


def run_fault(fault: Fault) -> Result:
    """Plants a fault and runs its test."""
    start = time.monotonic()

    def result(outcome: Outcome, reason: str = "") -> Result:
        return Result(fault, outcome, time.monotonic() - start, reason)

    try:
        with copied_source() as source:
            fault.plant(source)
            ended = run_tests(source, [fault.test])
    except RegisterError as error:
        return result("error", str(error))
    except subprocess.TimeoutExpired:
        return result("error", f"{fault.test} exceeds {_TIME_LIMIT:.0f} s")
    if ended.returncode == _FAILED:
        return result("found")
    if ended.returncode == _PASSED:
        return result("not found", f"{fault.test} passes")
    return result("error", f"{fault.test} ends with {ended.returncode}:\n{_last_lines(ended)}")


def check_without_faults(selected: Sequence[Fault]) -> None:
    """Runs the tests of faults without a fault. Raises SystemExit if one fails."""
    tests = list(dict.fromkeys(fault.test for fault in selected))
    try:
        with copied_source() as source:
            ended = run_tests(source, tests)
    except subprocess.TimeoutExpired as error:
        sys.exit(f"without a fault the tests exceed {error.timeout:.0f} s")
    if ended.returncode != _PASSED:
        sys.exit(f"without a fault the tests end with {ended.returncode}:\n{_last_lines(ended)}")


def _last_lines(ended: subprocess.CompletedProcess[str]) -> str:
    return "\n".join((ended.stdout + ended.stderr).splitlines()[-8:])


def main() -> None:
    """Runs the selected faults. Exits with 1 unless all of them are found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", metavar="NAME", help="the faults whose names contain NAME")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="faults at the same time")
    options = parser.parse_args()
    selected = [fault for fault in faults() if (options.only or "") in fault.name]
    if not selected:
        sys.exit(f'expected the name of a fault, found "{options.only}"')
    check_without_faults(selected)
    with ThreadPoolExecutor(options.jobs) as pool:
        results = []
        for result in pool.map(run_fault, selected):
            print(result, flush=True)
            results.append(result)
    found = sum(result.outcome == "found" for result in results)
    print(f"{found} of {len(results)} faults found")
    sys.exit(found < len(results))


if __name__ == "__main__":
    main()
