"""Arguments of Java methods.

py4j asks ten converters for each text and number, though none is needed. It sends a message for
each item of a list.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_trees import to_sequence

_PLAIN = frozenset({bool, bytearray, bytes, float, int, str, type(None)})
"""Types of values that py4j passes as they are."""


def pass_plain_values(session: SparkSession) -> None:
    """Makes py4j pass plain values to the JVM of a session without asking its converters."""
    java: Any = session._jvm
    converters = java._gateway_client.converters
    if not any(isinstance(each, _Converters) for each in converters):
        converters[:] = [_Converters([*converters])]


def pass_sequences(session: SparkSession) -> None:
    """Makes PySpark pass the columns of a method to the JVM of a session in one message.

    `keep_classes_of_pyspark` keeps the class whose method this replaces.
    """
    java: Any = session._jvm
    utils = java.PythonUtils
    vars(utils)["toSeq"] = partial(to_sequence, utils.toSeq)


class _Converters:
    """Several converters as one, for values that are not plain."""

    def __init__(self, converters: list[Any]) -> None:
        self._converters = converters

    def can_convert(self, value: Any) -> bool:
        """Returns whether a converter accepts the value."""
        return type(value) not in _PLAIN and self._find(value) is not None

    def convert(self, value: Any, client: Any) -> Any:
        """Returns the Java object of the value."""
        return self._find(value).convert(value, client)

    def _find(self, value: Any) -> Any:
        return next((each for each in self._converters if each.can_convert(value)), None)
