"""Mutants of pipeline files, YAML and SQL: the plan raises errors of the user only, within seconds.

.venv/bin/python tests/fuzz/parser.py --seed 1 --count 1000
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from fuzzing import main, mutant

from penstock import app
from penstock.core.error_report import format_error
from penstock.core.errors import Bug, PenstockError

ROOT = Path(__file__).parents[2]
DIRECTORIES = (
    ROOT / "tests" / "golden" / "pipelines", ROOT / "tests" / "golden" / "wrong",
    *sorted((ROOT / "examples").glob("*/")),
)  # fmt: skip
TIMEOUT = 20.0


class Late(BaseException):
    """A plan that takes longer than `TIMEOUT`."""


def run(seed: int, count: int) -> Iterator[str]:
    """Plans mutants. Yields an exception that is not an error of the user, with its mutant."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        originals = list(copy_pipelines(Path(directory), DIRECTORIES))
        for number in range(count):
            original = random.choice(originals)
            text = mutant(random, original.read_bytes())
            path = original.with_name(f"mutant{original.suffix}")
            path.write_bytes(text)
            problem = _plan(path)
            if problem is not None:
                yield f"seed {seed}, number {number}, {original.name}: {problem}\n{text!r}"


def copy_pipelines(directory: Path, sources: Sequence[Path]) -> Iterator[Path]:
    """Copies the pipelines with the files beside them. Yields the copies."""
    for source in sources:
        target = directory / source.name
        shutil.copytree(source, target)
        yield from sorted(path for path in target.iterdir() if path.suffix in (".yaml", ".sql"))


def _plan(path: Path) -> str | None:
    """Returns the problem of planning a file; None if the plan or the error is as expected."""
    directory = Path.cwd()
    os.chdir(path.parent)
    try:
        return problem_of(lambda: app.plan(path.name, env={}))
    finally:
        os.chdir(directory)


def problem_of(make_plan: Callable[[], object]) -> str | None:
    """Returns the problem of planning; None if the plan or the error is as expected."""
    try:
        with _limited():
            make_plan()
    except Bug as error:
        return f"{error!r}"
    except PenstockError as error:
        return None if format_error(error) else "empty error"
    except (Exception, Late) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
    return None


@contextmanager
def _limited() -> Iterator[None]:
    """Raises Late in a block that takes too long."""

    def end(*_: object) -> None:
        raise Late

    previous = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


if __name__ == "__main__":
    main(run)
