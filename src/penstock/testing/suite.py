"""The cases of pipeline files, and the Spark session that all of them share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import app
from penstock.spec.load import tests_beside
from penstock.testing.case import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
}
"""Compiling a plan takes longer than running it over a few rows."""


def cases(
    path: str | Path, *, sets: app.Sets = (), env: Mapping[str, str] | None = None
) -> list[Case]:
    """The cases of a pipeline file and of the test file beside it (`x.test.yaml` for `x.yaml`).

    Raises UserError, Mistakes.
    """
    from penstock.runtime.schemas import pinned
    from penstock.runtime.state import StateDirectory

    beside = tests_beside(path)
    plan = app.plan([path, beside] if beside.is_file() else [path], sets=sets, env=env)
    known = pinned(StateDirectory(plan.state))
    return [Case(plan, index, known) for index in range(len(plan.spec.tests))]


def pipeline_files(paths: Sequence[Path]) -> list[Path]:
    """The files, each once, with those that hold only tests replaced by their pipelines."""
    found: dict[Path, None] = {}
    for path in paths:
        stem = path.stem.removesuffix(".test")
        pipeline = path.with_name(stem + path.suffix)
        found[pipeline if pipeline.is_file() else path] = None
    return list(found)


def named(case: Case, patterns: Sequence[str]) -> bool:
    """Whether the case's name is, contains or fits one of the patterns; with none, any is."""
    name = case.spec.name.lower()
    wanted = [pattern.lower() for pattern in patterns]
    return not wanted or any(each in name or fnmatchcase(name, each) for each in wanted)


@contextmanager
def session(packages: Sequence[str] = (), log_file: Path | None = None) -> Iterator[SparkSession]:
    """A small local Spark for cases; it ends with the block."""
    from penstock.engine.session import SessionSettings, close, create

    conf = {**_SETTINGS, **({"spark.jars.packages": ",".join(packages)} if packages else {})}
    try:
        yield create(SessionSettings(master="local[2]", conf=conf, log_file=log_file))
    finally:
        close()
