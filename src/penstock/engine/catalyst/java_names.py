"""Names of Java classes. py4j asks the JVM for each part of a name, each time; these are kept."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark.sql import SparkSession

_CLASSES_OF_PYSPARK = {
    "PythonForeachBatchHelper": "org.apache.spark.sql.execution.streaming.sources."
    "PythonForeachBatchHelper",
    "PythonSQLUtils": "org.apache.spark.sql.api.python.PythonSQLUtils",
    "PythonUtils": "org.apache.spark.api.python.PythonUtils",
    "SerDeUtil": "org.apache.spark.api.python.SerDeUtil",
    "SimplePythonFunction": "org.apache.spark.api.python.SimplePythonFunction",
    "functions": "org.apache.spark.sql.functions",
    **{
        name: name
        for name in (
            "org.apache.spark.sql.classic.SparkSession",
            "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource",
            "org.apache.spark.sql.execution.python.UserDefinedPythonFunction",
            "org.apache.spark.sql.functions",
        )
    },
}
"""The classes that PySpark uses for each expression, function and source, by its own names."""


class JavaNames:
    """Packages and classes below a package, as attributes: `names.org.apache.spark.SparkEnv`.

    A name with a capital letter is a class. An unknown class is an error of its first use.
    """

    def __init__(self, client: Any, package: str = "") -> None:
        self._client, self._package = client, package

    def __getattr__(self, name: str) -> Any:
        path = f"{self._package}.{name}" if self._package else name
        is_class = name[:1].isupper()
        found = _Class(path, self._client) if is_class else JavaNames(self._client, path)
        self.__dict__[name] = found
        return found


class _Class(JavaClass):  # type: ignore[misc]
    """A class whose methods are kept."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


def keep_classes_of_pyspark(session: SparkSession) -> None:
    """Keeps the classes that PySpark looks up by their names.

    For a short name the JVM searches all packages that PySpark imports.
    """
    view: Any = session._jvm
    view.__dict__ |= {
        name: _Class(path, view._gateway_client) for name, path in _CLASSES_OF_PYSPARK.items()
    }
    view.__dict__["py4j"] = names_of_client(view._gateway_client).py4j


def java_names(session: SparkSession) -> JavaNames:
    """Returns the Java packages of a session."""
    java: Any = session._jvm
    return names_of_client(java._gateway_client)


@lru_cache(maxsize=1)
def names_of_client(client: Any) -> JavaNames:
    """Returns the Java packages that a client of py4j reads, as a Java object has one."""
    return JavaNames(client)
