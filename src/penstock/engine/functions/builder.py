"""Builders of Spark's function registry: from the arguments of a call to Catalyst expressions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import uuid4

_BUILDER = """
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedExtractValue;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.types.DataType;

private String kind;
private String signature;
private String[] names;
private DataType[] types;
private DataType returns;
private FunctionRegistry registry;
private org.apache.spark.sql.execution.python.UserDefinedPythonFunction python;
private Expression[] bodies;
private String[] cases;

public void accept(Object given) {
  Object[] parts = (Object[]) given;
  kind = (String) parts[0];
  signature = (String) parts[1];
  names = (String[]) parts[2];
  types = (DataType[]) parts[3];
  returns = (DataType) parts[4];
  registry = (FunctionRegistry) parts[5];
  python = (org.apache.spark.sql.execution.python.UserDefinedPythonFunction) parts[6];
  bodies = (Expression[]) parts[7];
  cases = (String[]) parts[8];
}

public Object apply(Object given) {
  scala.collection.immutable.Seq arguments = (scala.collection.immutable.Seq) given;
  Expression[] values = check(arguments);
  if (bodies.length > 0) {
    int number = 0;
    while (number < cases.length && !holds(cases[number], values)) {
      number++;
    }
    Expression result = substitute(bodies[number], values);
    return returns == null ? result : Cast$.MODULE$.apply(result, returns, true);
  }
  if (kind.equals("row")) {
    return row(values);
  }
  Expression[] inputs = values;
  if (kind.equals("aggregate")) {
    inputs = new Expression[] {collected(values)};
  } else if (values.length == 0) {
    inputs = new Expression[] {Literal$.MODULE$.apply(Integer.valueOf(0))};
  }
  Expression call = python.builder(sequence(inputs));
  Expression error = new GetStructField(call, 1, scala.Option.empty());
  Expression raised = lookup("raise_error", new Expression[] {error});
  Expression value = new If(
      new IsNull(error),
      new GetStructField(call, 0, scala.Option.empty()),
      Cast$.MODULE$.apply(raised, returns, true));
  if (!kind.equals("table") && !kind.equals("relation")) {
    return value;
  }
  Expression generator = lookup("inline", new Expression[] {value});
  if (kind.equals("table")) {
    return generator;
  }
  return new org.apache.spark.sql.catalyst.plans.logical.Generate(
      (org.apache.spark.sql.catalyst.expressions.Generator) generator,
      sequence(new Expression[0]), false, scala.Option.empty(), sequence(new Expression[0]),
      new org.apache.spark.sql.catalyst.plans.logical.OneRowRelation());
}

private Expression[] check(scala.collection.immutable.Seq arguments) {
  int count = arguments.size();
  if (count != types.length) {
    fail("expected " + types.length + (types.length == 1 ? " argument" : " arguments")
        + ", found " + count);
  }
  Expression[] values = new Expression[count];
  Expression[] ordered = ordered(arguments);
  for (int i = 0; i < count; i++) {
    Expression argument = ordered[i];
    values[i] = argument;
    if (types[i] != null && argument.resolved()) {
      DataType found = argument.dataType();
      if (!Cast.canANSIStoreAssign(found, types[i])) {
        fail("argument \\"" + names[i] + "\\" is " + found.sql() + ", not " + types[i].sql());
      }
      if (!found.equals(types[i])) {
        values[i] = Cast$.MODULE$.apply(argument, types[i], true);
      }
    }
  }
  return values;
}

private Expression[] ordered(scala.collection.immutable.Seq arguments) {
  Expression[] values = new Expression[types.length];
  for (int i = 0; i < values.length; i++) {
    Expression argument = (Expression) arguments.apply(i);
    int place = i;
    if (argument instanceof NamedArgumentExpression) {
      String name = ((NamedArgumentExpression) argument).key();
      argument = ((NamedArgumentExpression) argument).value();
      for (place = 0; place < names.length && !names[place].equalsIgnoreCase(name); place++) {
      }
      if (place == names.length) {
        fail("there is no parameter \\"" + name + "\\"");
      }
    }
    if (values[place] != null) {
      fail("argument \\"" + names[place] + "\\" is given twice");
    }
    values[place] = argument;
  }
  return values;
}

private boolean holds(String types, Expression[] values) {
  int integers = 0;
  int doubles = 0;
  int times = 0;
  boolean nested = false;
  for (int i = 0; i < values.length; i++) {
    DataType type = values[i].dataType();
    integers += type instanceof org.apache.spark.sql.types.IntegralType ? 1 : 0;
    doubles += type instanceof org.apache.spark.sql.types.FractionalType
        && !(type instanceof org.apache.spark.sql.types.DecimalType) ? 1 : 0;
    times += type instanceof org.apache.spark.sql.types.TimestampType
        || type instanceof org.apache.spark.sql.types.TimestampNTZType ? 1 : 0;
    if (i == 0 && type instanceof org.apache.spark.sql.types.ArrayType) {
      nested = ((org.apache.spark.sql.types.ArrayType) type).elementType()
          instanceof org.apache.spark.sql.types.ArrayType;
    }
  }
  if (types.equals("integers")) {
    return integers == values.length;
  }
  if (types.equals("times")) {
    return times == values.length;
  }
  return types.equals("doubles") ? doubles > 0 : nested;
}

private void fail(String problem) {
  org.apache.spark.unsafe.Platform.throwException(
      new org.apache.spark.sql.AnalysisException(
          "USER_RAISED_EXCEPTION",
          new scala.collection.immutable.Map.Map1(
              "errorMessage", problem + "; the function is " + signature)));
}

private Expression collected(Expression[] values) {
  Expression[] rows = new Expression[] {row(values)};
  return ((AggregateFunction) lookup("collect_list", rows)).toAggregateExpression();
}

private Expression row(Expression[] values) {
  Expression[] fields = new Expression[2 * values.length];
  for (int i = 0; i < values.length; i++) {
    fields[2 * i] = Literal$.MODULE$.apply(names[i]);
    fields[2 * i + 1] = values[i];
  }
  return lookup("named_struct", fields);
}

private Expression lookup(String function, Expression[] arguments) {
  try {
    return (Expression) registry.lookupFunction(
        new FunctionIdentifier(
            function, scala.Option.apply("builtin"), scala.Option.apply("system")),
        sequence(arguments));
  } catch (Exception error) {
    org.apache.spark.unsafe.Platform.throwException(error);
    return null;
  }
}

private Expression substitute(Expression expression, Expression[] values) {
  if (expression instanceof UnresolvedAttribute) {
    scala.collection.immutable.Seq path = ((UnresolvedAttribute) expression).nameParts();
    for (int i = 0; i < names.length; i++) {
      if (names[i].equalsIgnoreCase((String) path.apply(0))) {
        Expression value = values[i];
        for (int k = 1; k < path.size(); k++) {
          value = new UnresolvedExtractValue(value, Literal$.MODULE$.apply((String) path.apply(k)));
        }
        return value;
      }
    }
    return expression;
  }
  scala.collection.immutable.Seq children =
      (scala.collection.immutable.Seq) expression.children();
  Expression[] replaced = new Expression[children.size()];
  for (int i = 0; i < replaced.length; i++) {
    replaced[i] = substitute((Expression) children.apply(i), values);
  }
  return (Expression) expression.withNewChildren(sequence(replaced));
}

private scala.collection.immutable.Seq sequence(Object[] items) {
  java.util.ArrayList list = new java.util.ArrayList();
  for (int i = 0; i < items.length; i++) {
    list.add(items[i]);
  }
  return org.apache.spark.api.python.PythonUtils.toSeq(list);
}
"""
"""A function of Spark's registry: given the arguments, it returns an expression or a relation.

A call of a Python function is a struct of the value and the error of a row, so that an error is
raised only where the value is used. Spark compiles its own plans by the same compiler.
"""


def new_builder(gateway: Any, parts: list[Any]) -> Any:
    """Returns a Java function that builds the calls of a user-defined function."""
    java = gateway.jvm
    given = gateway.new_array(java.java.lang.Object, len(parts))
    for index, part in enumerate(parts):
        given[index] = part
    builder = _compiled(gateway).getDeclaredConstructor(java_array(gateway, "java.lang.Class", []))
    instance = builder.newInstance(java_array(gateway, "java.lang.Object", []))
    instance.accept(given)
    return instance


def java_array(gateway: Any, name: str, items: list[Any]) -> Any:
    """Returns items as an array of a Java class."""
    kind = gateway.jvm
    for part in name.split("."):
        kind = getattr(kind, part)
    array = gateway.new_array(kind, len(items))
    for index, item in enumerate(items):
        array[index] = item
    return array


@lru_cache(maxsize=1)
def _compiled(gateway: Any) -> Any:
    """Returns the Java class of the text `_BUILDER`, of a name of its own.

    Py4J finds methods by the name of the class.
    """
    java = gateway.jvm
    compiler = java.org.codehaus.janino.ClassBodyEvaluator()
    compiler.setClassName(f"penstock.FunctionBuilder{uuid4().hex}")
    compiler.setParentClassLoader(java.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    interfaces = [
        java.java.lang.Class.forName("scala.Function1"),
        java.java.lang.Class.forName("java.util.function.Consumer"),
    ]
    compiler.setImplementedInterfaces(java_array(gateway, "java.lang.Class", interfaces))
    compiler.cook(java.java.io.StringReader(_BUILDER))
    return compiler.getClazz()
