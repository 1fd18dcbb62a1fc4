"""Files of the checkpoint of a query on the local disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from penstock import app
from penstock.engine.spark_session.hadoop import tuning_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """\
runtime: {state: state}
sources:
  rows:
    type: generate
    rows: 5
    fields: {id: sequence, at: timestamp}
    watermark: {column: at, delay: 1 second}
transforms:
  counts: {type: sql, sql: "SELECT count(*) AS n FROM rows GROUP BY window(at, '1 second')"}
sinks:
  out: {type: blackhole, from: counts}
"""


def test_there_are_no_files_of_checksums_of_hadoop(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    plan = app.plan(tmp_path / "p.yaml")
    outcome = app.run(plan, spark=penstock_spark.newSession())
    assert not outcome.errors
    checkpoint = plan.state / "checkpoints" / "counts"
    assert (checkpoint / "offsets" / "0").exists()
    assert (checkpoint / "commits" / "0").exists()
    assert any((checkpoint / "state").rglob("*.delta*"))
    assert not list(checkpoint.rglob("*.crc"))
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in checkpoint.rglob("*/0")}
    assert modes == {(False, 0o644), (True, 0o755)}
    assert plan.state.stat().st_mode & 0o777 == 0o700


def test_a_task_replaces_the_files_of_hadoop_in_its_java(penstock_spark: SparkSession) -> None:
    """A local master has one Java for the driver and for tasks."""
    spark: Any = penstock_spark
    files = spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())
    of_the_driver = files.getRaw()
    assert [row.failures for row in tuning_tasks(penstock_spark, 2).collect()] == ["", ""]
    assert not files.getRaw().equals(of_the_driver)
    assert files.getRaw().getClass().getSuperclass().getSimpleName() == "RawLocalFileSystem"


def test_java_sets_the_mode_of_a_local_file_by_itself(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    spark: Any = penstock_spark
    settings, java = spark._jsc.hadoopConfiguration(), spark._jvm
    hadoop = java.org.apache.hadoop.fs
    local = hadoop.FileSystem.getLocal(settings)
    path = tmp_path / "a b"
    path.mkdir()
    for mode in ("640", "1755", "700"):
        local.setPermission(hadoop.Path(str(path)), hadoop.permission.FsPermission(mode))
        assert f"{path.stat().st_mode & 0o7777:o}" == mode
    with pytest.raises(Py4JJavaError) as failure:
        permission = hadoop.permission.FsPermission("600")
        local.getRaw().setPermission(hadoop.Path(str(tmp_path / "none")), permission)
    assert "java.nio.file.NoSuchFileException" in str(failure.value)


def test_settings_of_tasks_have_no_origins(penstock_spark: SparkSession) -> None:
    spark: Any = penstock_spark
    settings = spark._jsc.hadoopConfiguration()
    assert settings.get("fs.defaultFS") == "file:///"
    assert settings.getPropertySources("io.file.buffer.size") is None
    copy = spark._jsparkSession.sessionState().newHadoopConf()
    assert copy.getInt("io.file.buffer.size", 0) > 0
    assert copy.getPropertySources("io.file.buffer.size") is None
