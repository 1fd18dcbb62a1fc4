"""Hadoop in the JVM of the driver: local files and settings without needless work."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_functions import compile_java

_TUNE = """
public static class LocalFiles extends org.apache.hadoop.fs.RawLocalFileSystem {
  public void setPermission(
      org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission)
      throws java.io.IOException {
    if (permission.getStickyBit()) {
      super.setPermission(path, permission);
    } else {
      java.nio.file.Files.setPosixFilePermissions(
          pathToFile(path).toPath(),
          java.nio.file.attribute.PosixFilePermissions.fromString(permission.toString()));
    }
  }
}

private static java.lang.reflect.Field field(Class owner, String name) throws Exception {
  java.lang.reflect.Field field = owner.getDeclaredField(name);
  field.setAccessible(true);
  return field;
}

public Object apply(Object local, Object settings) {
  org.apache.hadoop.conf.Configuration conf = (org.apache.hadoop.conf.Configuration) settings;
  org.apache.hadoop.fs.LocalFileSystem files = (org.apache.hadoop.fs.LocalFileSystem) local;
  try {
    LocalFiles raw = new LocalFiles();
    raw.initialize(files.getUri(), conf);
    field(org.apache.hadoop.fs.FilterFileSystem.class, "fs").set(files, raw);
    conf.size();
    java.util.Map origins = (java.util.Map)
        field(org.apache.hadoop.conf.Configuration.class, "updatingResource").get(conf);
    origins.clear();
    return null;
  } catch (Exception error) {
    throw new RuntimeException(error);
  }
}
"""
"""Replaces the files of `local`, and removes the origins of `settings`."""


def tune_hadoop(session: SparkSession) -> None:
    """Saves work that Hadoop does for each local file and for each state of a batch.

    * Hadoop starts two processes for the mode of each file, and two more for a file of checksums.
      Java sets the same mode by itself, and Spark has checksums of its own for files of state.
    * Spark sends the settings of Hadoop to the tasks of each stateful operator in each batch, and
      Hadoop compresses the origin of each one by itself. Origins are only used in messages.
    """
    java: Any = session
    settings = java._jsc.hadoopConfiguration()
    local = java._jvm.org.apache.hadoop.fs.FileSystem.getLocal(settings)
    local.setWriteChecksum(False)
    compile_java(session.sparkContext._gateway, _TUNE).apply(local, settings)
