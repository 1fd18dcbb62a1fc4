"""Extensions of a Spark session that come with Spark itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.engine.catalyst.java_functions import compile_java

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOADER = """
public Object apply(Object parent, Object unused) {
  return new Loader((ClassLoader) parent);
}

static class Loader extends ClassLoader {
  Loader(ClassLoader parent) {
    super(parent);
  }

  public java.util.Enumeration getResources(String name) throws java.io.IOException {
    java.util.Enumeration found = getParent().getResources(name);
    if (!name.endsWith("/org.apache.spark.sql.SparkSessionExtensionsProvider")) {
      return found;
    }
    java.util.Vector others = new java.util.Vector();
    while (found.hasMoreElements()) {
      Object each = found.nextElement();
      if (each.toString().indexOf("/spark-mllib_") < 0) {
        others.add(each);
      }
    }
    return others.elements();
  }
}
"""


@contextmanager
def without_extension_of_mllib(context: SparkContext) -> Iterator[None]:
    """Omits the functions of Spark's machine learning from a session that this thread creates.

    Only `pyspark.ml` calls these functions. Their registration takes a tenth of the CPU seconds of
    a start. Extensions of other packages are loaded.
    """
    gateway: Any = context._gateway
    thread = gateway.jvm.java.lang.Thread.currentThread()
    loader = thread.getContextClassLoader()
    parent = loader or gateway.jvm.org.apache.spark.util.Utils.getSparkClassLoader()
    thread.setContextClassLoader(compile_java(gateway, _LOADER).apply(parent, None))
    try:
        yield
    finally:
        thread.setContextClassLoader(loader)
