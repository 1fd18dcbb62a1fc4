"""Java that tasks compile from text: executors do not have the classes of the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession

from penstock.engine.catalyst.logical_plans import Catalyst

_COMPILER = "org.codehaus.janino.ClassBodyEvaluator"


def hash_code_in_tasks(session: SparkSession, body: str) -> Column:
    """Returns the hash code of an object with the methods of a text, as a column.

    Each row compiles the text, by the compiler of Spark.
    """
    objects = _Objects(Catalyst(session))
    text = objects.new("java.io.StringReader", objects.text(body))
    compiled = objects.call(objects.new(_COMPILER), "createInstance", "java.lang.Object", text)
    return objects.hash_code(compiled)


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
        return self._invoke(target, method, self._type(result), arguments)

    def hash_code(self, target: Any) -> Column:
        integer = self.catalyst.java.org.apache.spark.sql.types.DataTypes.IntegerType
        return self.catalyst.column(self._invoke(target, "hashCode", integer, ()))

    def _invoke(self, target: Any, method: str, type_: Any, arguments: tuple[Any, ...]) -> Any:
        sequence = self.catalyst.sequence
        return self.catalyst.expressions.objects.Invoke(
            target, method, type_, sequence(arguments), sequence([]), False, False, False
        )

    def _type(self, name: str) -> Any:
        java = self.catalyst.java
        return java.org.apache.spark.sql.types.ObjectType(java.java.lang.Class.forName(name))
