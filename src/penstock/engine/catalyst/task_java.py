"""Java that tasks compile from text: executors do not have the classes of the driver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession

from penstock.engine.catalyst.logical_plans import Catalyst

_COMPILER = "org.codehaus.janino.ClassBodyEvaluator"
_STRING = "org.apache.spark.unsafe.types.UTF8String"
_CALLING = f"""
private static String failure(String needed, String body) {{
  try {{
    Thread.currentThread().getContextClassLoader().loadClass(needed);
    {_COMPILER} compiler = new {_COMPILER}();
    compiler.setImplementedInterfaces(new Class[] {{java.util.concurrent.Callable.class}});
    Object compiled = compiler.createInstance(new java.io.StringReader(body));
    ((java.util.concurrent.Callable) compiled).call();
    return "";
  }} catch (Throwable error) {{
    return error + "\\n";
  }}
}}

public String toString() {{
  String[] texts = new String[] {{TEXTS}};
  String failures = "";
  for (int number = 0; number < texts.length; number += 2) {{
    failures += failure(texts[number], texts[number + 1]);
  }}
  return failures.trim();
}}
"""


def failures_in_tasks(session: SparkSession, bodies: Mapping[str, str]) -> Column:
    """Returns the failures of methods `Object call()` of texts, as a column; empty without any.

    Each text has the name of a class that it needs. Each row compiles the texts, by the compiler of
    Spark. No failure ends the task, also not that of a class that the executor lacks.
    """
    objects = _Objects(Catalyst(session))
    text = objects.new("java.io.StringReader", objects.text(calling(bodies)))
    compiled = objects.call(objects.new(_COMPILER), "createInstance", "java.lang.Object", text)
    return objects.string_of(compiled)


def calling(bodies: Mapping[str, str]) -> str:
    """Returns a text of Java whose `toString` calls each text and returns the failures.

    It has no other classes than those of Java and of the compiler.
    """
    texts = ", ".join(json.dumps(text) for pair in bodies.items() for text in pair)
    return _CALLING.replace("TEXTS", texts)


@dataclass(frozen=True)
class _Objects:
    """Expressions of Spark whose values are objects of Java."""

    catalyst: Catalyst

    def text(self, value: str) -> Any:
        return self.catalyst.expressions.Literal(value, self._type("java.lang.String"))

    def new(self, name: str, *arguments: Any) -> Any:
        """Returns a new object of a class with this name."""
        java, sequence = self.catalyst.java, self.catalyst.sequence
        class_, none = java.java.lang.Class.forName(name), java.scala.Option.empty()
        return self.catalyst.expressions.objects.NewInstance(
            class_, sequence(arguments), sequence([]), False, self._type(name), none
        )

    def call(self, target: Any, method: str, result: str, *arguments: Any) -> Any:
        """Returns the result of a method, an object of a class with this name."""
        sequence = self.catalyst.sequence
        return self.catalyst.expressions.objects.Invoke(
            target, method, self._type(result), sequence(arguments), sequence([]),
            False, False, False,
        )  # fmt: skip

    def string_of(self, target: Any) -> Column:
        """Returns the string of an object, as a column."""
        java, sequence = self.catalyst.java, self.catalyst.sequence
        text = self.call(target, "toString", "java.lang.String")
        string = self.catalyst.expressions.objects.StaticInvoke(
            java.java.lang.Class.forName(_STRING),
            java.org.apache.spark.sql.types.DataTypes.StringType,
            "fromString", sequence([text]), sequence([]), False, False, False,
            java.scala.Option.empty(),
        )  # fmt: skip
        return self.catalyst.column(string)

    def _type(self, name: str) -> Any:
        java = self.catalyst.java
        return java.org.apache.spark.sql.types.ObjectType(java.java.lang.Class.forName(name))
