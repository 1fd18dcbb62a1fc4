"""Data errors: errors of Spark about the values of a row."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from penstock.core.errors import RecordError, Rejected
from penstock.core.text import shorten
from penstock.engine.catalyst.java_functions import compile_java

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""The exceptions of a failed job. PySpark has no class for most of Java's exceptions."""

_FIND_EVALUATION = """
public Object apply(Object error, Object unused) {
  for (Throwable each = (Throwable) error; each != null; each = each.getCause()) {
    if (isOfEvaluation(each)) {
      return each.getClass().getName() + ": " + each.getMessage();
    }
  }
  return null;
}

private static boolean isOfEvaluation(Throwable error) {
  StackTraceElement[] frames = error.getStackTrace();
  if (error instanceof StackOverflowError) {
    return frames.length > 0 && frames[0].getClassName().startsWith("java.util.regex.");
  }
  if (error instanceof OutOfMemoryError && frames.length == 0) {
    return true;
  }
  for (int i = 0; i < frames.length; i++) {
    String name = frames[i].getClassName();
    if (evaluates(name, frames[i].getMethodName())) {
      return true;
    }
    if (name.startsWith("org.apache.spark.") && !isOfValues(name)) {
      return false;
    }
  }
  return false;
}

private static boolean evaluates(String name, String method) {
  return name.startsWith("org.apache.spark.sql.catalyst.expressions.")
    && (method.toLowerCase().contains("eval") || name.contains("GeneratedClass")
      || name.contains("Projection") || name.contains(".aggregate."));
}

private static boolean isOfValues(String name) {
  return name.startsWith("org.apache.spark.sql.catalyst.")
    || name.startsWith("org.apache.spark.sql.errors.")
    || name.startsWith("org.apache.spark.sql.types.")
    || name.startsWith("org.apache.spark.sql.util.")
    || name.startsWith("org.apache.spark.types.")
    || name.startsWith("org.apache.spark.unsafe.")
    || name.startsWith("org.apache.spark.util.")
    || name.startsWith("org.apache.spark.Spark");
}
"""
"""Returns the class and message of the first exception of a chain that an expression has raised.

The methods above the expression on its stack are of values, not of storage, shuffles or Python. A
regular expression may exhaust the stack, and a long text the memory of a task: the JVM keeps only
the last methods then, or none.
"""
_CONDITION = re.compile(
    r"(?:[\w.$]+: )?\[([A-Z_.0-9]+)\] (.*?)(?: SQLSTATE: \w{5}|\n== |$)", re.DOTALL
)
_CLASS = re.compile(r"(?:[\w.$]*[.$])?(\w+): (.*)", re.DOTALL)
_STATE = re.compile(r"\[[A-Z_.0-9]+\] .*? SQLSTATE: 22\w{3}", re.DOTALL)
_ADVICE = re.compile(
    r"(?<=\.)\s+(Use |To (return NULL|process)|If (necessary|you want)|Correct the|Please ).*",
    re.DOTALL,
)
_RAISED = "user-raised-exception"
_OWN = {
    "arithmetic-overflow": re.compile(r"the sum -?[\d.]+ (\w+ )?overflows [A-Z]"),
    "duplicated-map-key": re.compile("a key of a map is duplicated"),
    "function-failed": re.compile(r"function \"\w+\" failed: "),
    "missing-value": re.compile(r"column \".*?\" is null; expected a value"),
    "no-row": re.compile(r"the key .* has no row in \""),
    "null-map-key": re.compile("a key of a map is null"),
    "rule-broken": re.compile("the row breaks rules: "),
}
"""The codes of errors that Penstock itself raises by `raise_error`."""
_NONE = "no message"
_LONGEST = 1000
"""The length of a message, which may quote the value."""


def data_error(error: BaseException) -> RecordError | None:
    """Returns the record error of a Spark error that an expression raises on a row, or None.

    All errors of expressions are about the values of their rows: of casts, `raise_error`, regular
    expressions, functions in Python, nulls in NOT NULL columns.
    """
    if not isinstance(error, SPARK_ERRORS):
        return None
    if isinstance(error, Py4JJavaError):
        return _java_error(error.java_exception)
    java = getattr(error, "_origin", None)
    return _java_error(java) if java is not None else _error_of_state(str(error))


def to_record_error(error: Exception) -> RecordError:
    """Returns the record error of a Spark error, as `data_error` does. Raises another `error`."""
    found = data_error(error)
    if found is None:
        raise error
    return found


def require_data_error(error: Exception) -> None:
    """Raises an error of Spark that is not about a value."""
    if isinstance(error, PySparkException) and data_error(error) is None:
        raise error


def _java_error(java: Any) -> RecordError | None:
    gateway = SparkContext._gateway
    try:
        text = compile_java(gateway, _FIND_EVALUATION).apply(java, None)
    except (Py4JError, OSError):  # The JVM has ended.
        return None
    return parse_data_error(text) if text is not None else None


def _error_of_state(text: str) -> RecordError | None:
    """Returns the record error of a text with a SQLSTATE of class 22, as of Spark Connect."""
    found = _STATE.search(text)
    return parse_data_error(found[0]) if found else None


def parse_data_error(text: str) -> RecordError:
    """Returns the record error of an exception of an expression, from its class and message."""
    match = _CONDITION.match(text)
    if match is not None:
        code = match[1].split(".")[0].lower().replace("_", "-")
        message = match[2] if code == _RAISED else _ADVICE.sub("", match[2])
        message = " ".join(message.split()) or _NONE
        if code == _RAISED:
            code = next((code for code, start in _OWN.items() if start.match(message)), code)
        return Rejected(shorten(message, _LONGEST), code=code)
    named = _CLASS.match(text)
    kind, message = (named[1], named[2]) if named else ("", text)
    message = " ".join(message.removeprefix("requirement failed: ").split())
    if message in ("", "null"):
        message = _NONE
    if not kind.startswith("Spark"):
        message = f"{kind}: {message}"
    return Rejected(shorten(message, _LONGEST), code="sql-failed")
