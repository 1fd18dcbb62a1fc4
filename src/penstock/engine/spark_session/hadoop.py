"""Hadoop and logs in the JVMs of the driver and of executors, without needless work."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from penstock.engine.catalyst.java_functions import FIELD, compile_java
from penstock.engine.catalyst.task_java import failures_in_tasks

_TUNE = f"""{FIELD}
public static class LocalFiles extends org.apache.hadoop.fs.RawLocalFileSystem {{
  public void setPermission(
      org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission)
      throws java.io.IOException {{
    if (permission.getStickyBit()) {{
      super.setPermission(path, permission);
    }} else {{
      java.nio.file.Files.setPosixFilePermissions(
          pathToFile(path).toPath(),
          java.nio.file.attribute.PosixFilePermissions.fromString(permission.toString()));
    }}
  }}
}}

private static void tune(org.apache.hadoop.conf.Configuration conf) throws Exception {{
  org.apache.hadoop.fs.LocalFileSystem files = org.apache.hadoop.fs.FileSystem.getLocal(conf);
  LocalFiles raw = new LocalFiles();
  raw.initialize(files.getUri(), conf);
  files.setWriteChecksum(false);
  field(org.apache.hadoop.fs.FilterFileSystem.class, "fs").set(files, raw);
}}
"""
"""Replaces the files of the local file system of a JVM, which Hadoop keeps."""

_TUNE_DRIVER = f"""{_TUNE}
public Object apply(Object settings, Object unused) {{
  org.apache.hadoop.conf.Configuration conf = (org.apache.hadoop.conf.Configuration) settings;
  try {{
    tune(conf);
    conf.size();
    java.util.Map origins = (java.util.Map)
        field(org.apache.hadoop.conf.Configuration.class, "updatingResource").get(conf);
    origins.clear();
    return null;
  }} catch (Exception error) {{
    throw new RuntimeException(error);
  }}
}}
"""
"""Also removes the origins of the settings."""

TUNE_EXECUTOR = {
    "org.apache.hadoop.fs.RawLocalFileSystem": f"""{_TUNE}
public Object call() throws Exception {{
  tune(org.apache.spark.deploy.SparkHadoopUtil.get().conf());
  return null;
}}
""",
    "org.apache.logging.log4j.core.LoggerContext": """
public Object call() {
  org.apache.logging.log4j.core.LoggerContext context =
      (org.apache.logging.log4j.core.LoggerContext)
          org.apache.logging.log4j.LogManager.getContext(false);
  String location =
      String.valueOf(context.getConfiguration().getConfigurationSource().getLocation());
  if (location.contains("org/apache/spark/log4j2")) {
    org.apache.logging.log4j.core.config.Configurator.setRootLevel(
        org.apache.logging.log4j.Level.toLevel("LEVEL"));
  }
  return null;
}
""",
}
"""The files of an executor, and the level of a log that has the default settings of Spark.

Each has the name of a class that an executor may lack.
"""


def tune_hadoop(session: SparkSession) -> None:
    """Saves work that Hadoop does for each local file and for each state of a batch.

    * Hadoop starts two processes for the mode of each file, and two more for a file of checksums.
      Java sets the same mode by itself, and Spark has checksums of its own for files of state.
    * Spark sends the settings of Hadoop to the tasks of each stateful operator in each batch, and
      Hadoop compresses the origin of each one by itself. Origins are only used in messages.
    """
    java: Any = session
    settings = java._jsc.hadoopConfiguration()
    compile_java(session.sparkContext._gateway, _TUNE_DRIVER).apply(settings, None)


def tuning_tasks(session: SparkSession, number: int) -> DataFrame:
    """Returns a row for each of so many tasks, which save work on their executors.

    Hadoop's files take less CPU, as at the driver. The log has the level of the driver: by default
    Spark logs each task and each block, and `spark.executor.syncLogLevel.enabled` has no effect.
    An executor without such a task takes more CPU. A session of another program is left as it is.
    The column has the failures of a task, for which the executor remains as it is.
    """
    if not _is_tuned(session):
        return plain_tasks(session, number)
    java: Any = session
    level = java._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().name()
    bodies = {name: body.replace("LEVEL", level) for name, body in TUNE_EXECUTOR.items()}
    failures = failures_in_tasks(session, bodies)
    return session.range(0, number, 1, number).select(failures.alias("failures"))


def plain_tasks(session: SparkSession, number: int) -> DataFrame:
    """Returns the rows of `tuning_tasks` whose tasks leave their executors as they are."""
    return session.range(0, number, 1, number).select(lit("").alias("failures"))


def _is_tuned(session: SparkSession) -> bool:
    """Returns whether the JVM of the driver has the files of `tune_hadoop`."""
    java: Any = session
    files = java._jvm.org.apache.hadoop.fs.FileSystem.getLocal(java._jsc.hadoopConfiguration())
    return str(files.getRaw().getClass().getName()).endswith("$LocalFiles")
