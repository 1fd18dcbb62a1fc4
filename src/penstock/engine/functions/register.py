"""Registration of functions in Spark sessions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from penstock.core.errors import PlanError
from penstock.engine.catalyst.columns import to_spark
from penstock.engine.functions.builder import java_array, new_builder
from penstock.engine.functions.evaluate import Evaluation
from penstock.plan.functions import functions_of
from penstock.plan.functions.model import Function
from penstock.sql.dialect.user_aggregates import collect_rows
from penstock.sql.text.edits import Translation
from penstock.sql.user_functions import row_function, rows_function

_NAMES = (
    re.compile(
        r"\(IF\(\((?P<call>.+?)\.error IS NULL\), (?P=call)\.value, "
        r"raise_error\(USER_RAISED_EXCEPTION, map\(errorMessage, (?P=call)\.error\)\)\)\)"
    ),
    re.compile(
        r"if \(isnull\((?P<call>.+?)\.error\)\) (?P=call)\.value else "
        r"raise_error\(USER_RAISED_EXCEPTION, map\(errorMessage, (?P=call)\.error\)\)"
    ),
)
"""The names that Spark gives to the column of a call without an alias, and to inner calls."""


def register_functions(functions: Sequence[Function], session: SparkSession) -> None:
    """Registers functions in a session, in place of earlier ones. Raises PlanError."""
    known = functions_of(functions)
    for function in functions:
        state: Any = session._jsparkSession.sessionState()
        if function.sql:
            body = collect_rows(Translation.of(function.sql), known).text
            function = replace(function, sql=body)
        builders = {function.name: _builder(function, session, function.kind)}
        if function.kind == "aggregate":
            builders[row_function(function.name)] = _builder(function, session, "row")
            builders[rows_function(function.name)] = _builder(function, session, "rows")
        for name, builder in builders.items():
            state.functionRegistry().createOrReplaceTempFunction(name, builder, "python_udf")
        if function.kind == "table":
            relation = _builder(function, session, "relation")
            tables = state.tableFunctionRegistry()
            tables.createOrReplaceTempFunction(function.name, relation, "python_udtf")


def name_columns(frame: DataFrame) -> DataFrame:
    """Returns a frame with the names of calls as written: `f(x)`."""
    names = [_short(name) for name in frame.columns]
    return frame if names == frame.columns else frame.toDF(*names)


def _short(name: str) -> str:
    short = name
    for pattern in _NAMES:
        short = pattern.sub(r"\g<call>", short)
    return short if short == name else _short(short)


def _builder(function: Function, session: SparkSession, kind: str) -> Any:
    context: Any = session.sparkContext
    gateway, java = context._gateway, context._jvm
    state: Any = session._jsparkSession.sessionState()
    types = [_java_type(java, parameter.type) for parameter in function.parameters]
    names = [parameter.name for parameter in function.parameters]
    if kind == "rows":
        types, names = [None], ["rows"]
    python = None
    returns = function.returns
    expressions = [sql for _, sql in function.cases] + ([function.sql] if function.sql else [])
    bodies = [_parsed(function, sql, state) for sql in expressions]
    if not bodies:
        evaluation = Evaluation(function)
        returns = evaluation.type
        python = _python_function(evaluation)._judf  # type: ignore[attr-defined,unused-ignore]
    parts = [
        kind,
        function.signature,
        java_array(gateway, "java.lang.String", names),
        java_array(gateway, "org.apache.spark.sql.types.DataType", types),
        _java_type(java, returns),
        state.functionRegistry(),
        python,
        java_array(gateway, "org.apache.spark.sql.catalyst.expressions.Expression", bodies),
        java_array(gateway, "java.lang.String", [case for case, _ in function.cases]),
    ]
    return new_builder(gateway, parts)


def _parsed(function: Function, sql: str, state: Any) -> Any:
    """Returns an expression of a function in SQL. Raises PlanError."""
    try:
        return state.sqlParser().parseExpression(sql)
    except ParseException as error:
        reason = str(error.getMessage()).splitlines()[0]
        raise PlanError(
            f'function "{function.name}": {reason}', code="invalid-sql", where=function.where
        ) from None


def _python_function(evaluation: Evaluation) -> Any:
    value = to_spark(pa.schema({"value": evaluation.type}))["value"].dataType
    result = StructType([StructField("value", value), StructField("error", StringType())])
    kind: Any = PythonEvalType.SQL_SCALAR_ARROW_UDF
    function = evaluation.function
    call: Any = evaluation
    return UserDefinedFunction(call, result, function.name, kind, function.deterministic)


def _java_type(java: Any, type_: pa.DataType | None) -> Any:
    if type_ is None:
        return None
    spark_type = to_spark(pa.schema({"value": type_}))["value"].dataType
    return java.org.apache.spark.sql.types.DataType.fromJson(spark_type.json())
