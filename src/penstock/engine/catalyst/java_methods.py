"""Methods of Java classes that Python calls, found by reflection once for all threads of py4j."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_functions import compile_java

_SHARE = """
public static class Methods extends py4j.reflection.LRUCache {
  private final java.util.concurrent.ConcurrentHashMap found =
      new java.util.concurrent.ConcurrentHashMap();
  public Object get(Object key) {
    return found.get(key);
  }
  public Object put(Object key, Object method) {
    if (found.size() >= 20000) {
      found.clear();
    }
    return found.put(key, method);
  }
}

public static class Shared extends ThreadLocal {
  private final Methods methods = new Methods();
  public Object get() {
    return methods;
  }
}

public Object apply(Object first, Object second) {
  try {
    java.lang.reflect.Field field =
        py4j.reflection.ReflectionEngine.class.getDeclaredField("cacheHolder");
    field.setAccessible(true);
    field.set(null, new Shared());
    return null;
  } catch (Exception error) {
    throw new RuntimeException(error);
  }
}
"""
"""Replaces the cache of a thread, which holds 100 methods, by one for all threads.

A search of a method copies all methods of its class, and each query has a thread of its own.
"""


def share_methods(session: SparkSession) -> None:
    """Makes py4j keep the methods of a session that it has found."""
    compile_java(session.sparkContext._gateway, _SHARE).apply(None, None)
