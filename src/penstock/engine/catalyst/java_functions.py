"""Functions in Java, compiled from text in the JVM of the driver."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import uuid4

FIELD = """
private static java.lang.reflect.Field field(Class owner, String name) throws Exception {
  java.lang.reflect.Field field = owner.getDeclaredField(name);
  field.setAccessible(true);
  return field;
}
"""
"""A method that returns a private field of a class, for texts of Java."""


@lru_cache(maxsize=8)
def compile_java(gateway: Any, body: str) -> Any:
    """Returns an object with the methods of a text, among them `Object apply(Object, Object)`.

    Spark compiles its own plans by the same compiler. Py4J finds methods by the name of the class,
    so each compilation has a name of its own.
    """
    java = gateway.jvm
    compiler = java.org.codehaus.janino.ClassBodyEvaluator()
    compiler.setClassName(f"penstock.Function{uuid4().hex}")
    compiler.setParentClassLoader(java.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    interfaces = gateway.new_array(java.java.lang.Class, 1)
    interfaces[0] = java.java.lang.Class.forName("java.util.function.BiFunction")
    compiler.setImplementedInterfaces(interfaces)
    return compiler.createInstance(java.java.io.StringReader(body))
