"""Runs in a session that another program has started."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock import app
from penstock.core.errors import PenstockError
from penstock.core.log import Silent
from penstock.engine.spark_session.attached import check_python, check_session, check_version
from penstock.runtime.session import attach_to

pytestmark = pytest.mark.spark

PIPELINE = """\
name: attached
runtime: RUNTIME
sources: {rows: {type: memory, rows: [{id: 1}, {id: 2}], schema: id BIGINT}}
transforms: {counts: {type: sql, sql: "SELECT id, count(*) AS n FROM rows GROUP BY id"}}
sinks: {out: {type: files, from: counts, path: out, format: json}}
"""
OWN = """{master: "spark://other:7077", memory: 3g, packages: ["a:b:1"], spark: {
  spark.executor.memory: 7g, spark.sql.ansi.enabled: true}}"""


def test_settings_of_the_start_are_named(penstock_spark: SparkSession, tmp_path: Path) -> None:
    path, session = tmp_path / "attached.yaml", penstock_spark.newSession()
    path.write_text(PIPELINE.replace("RUNTIME", OWN))
    session.conf.set("spark.sql.shuffle.partitions", "200")
    with pytest.warns(UserWarning, match="do not apply") as found:
        outcome = penstock.run(path, spark=session)
    assert outcome.ending == "complete", outcome.errors
    (message,) = [str(each.message) for each in found if "do not apply" in str(each.message)]
    names = message.partition(": ")[2].partition(". ")[0].split(", ")
    assert names == [
        "runtime.master", "runtime.packages", "runtime.memory",
        "runtime.spark.spark.executor.memory",
    ]  # fmt: skip
    slots = str(session.sparkContext.defaultParallelism)
    assert session.conf.get("spark.sql.shuffle.partitions") == slots
    assert len("".join(file.read_text() for file in tmp_path.glob("out/*.jsonl")).split("\n")) == 3


def test_no_warning_without_such_settings(penstock_spark: SparkSession, tmp_path: Path) -> None:
    """Settings that apply, and the master of the session."""
    path, session = tmp_path / "attached.yaml", penstock_spark.newSession()
    master = session.sparkContext.master
    path.write_text(PIPELINE.replace("RUNTIME", f'{{master: "{master}", partitions: 3}}'))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "these settings do not apply")
        attach_to(session, app.plan(path), Silent())
    assert session.conf.get("spark.sql.shuffle.partitions") == "3"


def test_workers_without_the_packages_are_an_error(
    penstock_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_python(penstock_spark)
    bare, absent = tmp_path / "python3", tmp_path / "absent"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    path = tmp_path / "attached.yaml"
    path.write_text(PIPELINE.replace("RUNTIME", "{}"))
    for python in (bare, absent):
        monkeypatch.setattr(penstock_spark.sparkContext, "pythonExec", str(python))
        with pytest.raises(PenstockError, match="lacks penstock and pyarrow") as error:
            penstock.run(path, spark=penstock_spark.newSession())
        assert error.value.code == "unsupported-session"
        assert f"PYSPARK_PYTHON to {sys.executable}" in str(error.value.hint)


def test_other_sessions_are_errors() -> None:
    check_version("4.3.1")
    for version in ("4.2.9", "3.5.0", "4.30.0", "5.0.0-preview"):
        with pytest.raises(PenstockError, match=r"expected Spark 4\.3, found") as error:
            check_version(version)
        assert error.value.code == "unsupported-session" and error.value.hint
    with pytest.raises(PenstockError, match="Spark Connect"):
        check_session(object())  # type: ignore[arg-type]
