"""Trees of Spark, such as plans and expressions: their nodes, many in one message of py4j."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkContext

from penstock.engine.catalyst.java_functions import compile_java

CLASS_NAME = "_penstock_class_name"
"""The attribute of a Java object with the name of its class."""

_TREES = """
private static final java.util.concurrent.ConcurrentHashMap PATTERNS =
    new java.util.concurrent.ConcurrentHashMap();
private py4j.Gateway gateway;

public Object apply(Object gateway, Object unused) {
  this.gateway = (py4j.Gateway) gateway;
  return null;
}

private static boolean isPlain(Object item) {
  return item != null && !(item instanceof String || item instanceof Number
      || item instanceof Boolean || item instanceof Character || item instanceof java.util.Map
      || item instanceof java.util.Collection || item.getClass().isArray());
}

private void add(Object item, StringBuilder text) {
  String name = item.getClass().getSimpleName();
  text.append(gateway.putNewObject(item)).append(' ');
  text.append(name.isEmpty() ? "?" : name).append(' ');
}

public String items(Object sequence) {
  scala.collection.Iterable all = (scala.collection.Iterable) sequence;
  scala.collection.Iterator items = all.iterator();
  while (items.hasNext()) {
    if (!isPlain(items.next())) {
      return null;
    }
  }
  StringBuilder text = new StringBuilder();
  items = all.iterator();
  while (items.hasNext()) {
    add(items.next(), text);
  }
  return text.toString();
}

public String children(Object node) {
  return items(((org.apache.spark.sql.catalyst.trees.TreeNode) node).children());
}

public String varyingChildren(Object expression) {
  StringBuilder text = new StringBuilder();
  scala.collection.Iterator children =
      ((org.apache.spark.sql.catalyst.trees.TreeNode) expression).children().iterator();
  while (children.hasNext()) {
    Object child = children.next();
    if (!((org.apache.spark.sql.catalyst.expressions.Expression) child).foldable()) {
      add(child, text);
    }
  }
  return text.toString();
}

public String references(Object node) {
  return items((node instanceof org.apache.spark.sql.catalyst.plans.QueryPlan
      ? ((org.apache.spark.sql.catalyst.plans.QueryPlan) node).references()
      : ((org.apache.spark.sql.catalyst.expressions.Expression) node).references()).toSeq());
}

public boolean readsOnly(Object expression, Object plan) {
  return ((org.apache.spark.sql.catalyst.expressions.Expression) expression).references()
      .subsetOf(((org.apache.spark.sql.catalyst.plans.QueryPlan) plan).outputSet());
}

public String expressions(Object plan) {
  return items(((org.apache.spark.sql.catalyst.plans.QueryPlan) plan).expressions());
}

public String find(Object root, String name) {
  StringBuilder text = new StringBuilder();
  addFound(root, name, text);
  return text.toString();
}

public String findInExpressions(Object plan, String name) {
  StringBuilder text = new StringBuilder();
  scala.collection.Iterator expressions =
      ((org.apache.spark.sql.catalyst.plans.QueryPlan) plan).expressions().iterator();
  while (expressions.hasNext()) {
    addFound(expressions.next(), name, text);
  }
  return text.toString();
}

private void addFound(Object root, String name, StringBuilder text) {
  java.util.ArrayDeque pending = new java.util.ArrayDeque();
  pending.push(root);
  while (!pending.isEmpty()) {
    Object node = pending.pop();
    if (node.getClass().getSimpleName().equals(name)) {
      add(node, text);
    }
    scala.collection.Seq children =
        ((org.apache.spark.sql.catalyst.trees.TreeNode) node).children();
    scala.collection.Iterator below = children.reverseIterator();
    while (below.hasNext()) {
      pending.push(below.next());
    }
  }
}

private java.util.List objects(String ids) {
  java.util.ArrayList found = new java.util.ArrayList();
  String[] each = ids.split(" ");
  for (int i = 0; i < each.length; i++) {
    found.add(gateway.getObject(each[i]));
  }
  return found;
}

public Object sequence(String ids) {
  return org.apache.spark.api.python.PythonUtils.toSeq(objects(ids));
}

public Object replaced(Object plan, String pairs) {
  return ((org.apache.spark.sql.catalyst.plans.QueryPlan) plan)
      .mapExpressions(new Replacement(objects(pairs)));
}

public Object withNodes(Object root, String pairs) {
  return new Replacement(objects(pairs)).apply(root);
}

static class Replacement extends scala.runtime.AbstractFunction1 {
  private final java.util.List pairs;

  Replacement(java.util.List pairs) {
    this.pairs = pairs;
  }

  public Object apply(Object node) {
    for (int i = 0; i < pairs.size(); i += 2) {
      if (pairs.get(i) == node) {
        return pairs.get(i + 1);
      }
    }
    return ((org.apache.spark.sql.catalyst.trees.TreeNode) node).mapChildren(this);
  }
}

private static Object[] patterns(String names) {
  Object[] found = (Object[]) PATTERNS.get(names);
  if (found == null) {
    String[] parts = names.split(" ");
    found = new Object[parts.length];
    for (int i = 0; i < parts.length; i++) {
      found[i] = org.apache.spark.sql.catalyst.trees.TreePattern.withName(parts[i]);
    }
    PATTERNS.put(names, found);
  }
  return found;
}

public boolean contains(Object node, String names, boolean onlyStreams) {
  org.apache.spark.sql.catalyst.trees.TreeNode tree =
      (org.apache.spark.sql.catalyst.trees.TreeNode) node;
  Object[] patterns = patterns(names);
  for (int i = 0; i < patterns.length; i++) {
    if (tree.containsPattern((scala.Enumeration.Value) patterns[i])) {
      return !onlyStreams
          || ((org.apache.spark.sql.catalyst.plans.logical.LogicalPlan) node).isStreaming();
    }
  }
  return false;
}

public String parts(Object node, String names, boolean onlyStreams) {
  StringBuilder text = new StringBuilder();
  scala.collection.Iterator children =
      ((org.apache.spark.sql.catalyst.trees.TreeNode) node).children().iterator();
  while (children.hasNext()) {
    Object child = children.next();
    add(child, text);
    text.append(contains(child, names, onlyStreams) ? "1 " : "0 ");
  }
  return text.toString();
}
"""
"""Methods with the IDs of Java objects in py4j. Those that they return have the names of classes.

`items` returns null for a sequence with a value that py4j converts, such as a text.
"""


def items_of(sequence: Any) -> list[Any]:
    """Returns the items of a Scala sequence."""
    client = sequence._gateway_client
    found = _trees(client).items(sequence)
    if found is None:
        return [sequence.apply(index) for index in range(sequence.size())]
    return _objects(found, client)


def children_of(node: Any) -> list[Any]:
    """Returns the children of a node."""
    client = node._gateway_client
    return _objects(_trees(client).children(node), client)


def varying_children_of(expression: Any) -> list[Any]:
    """Returns the children of an expression that are not constant."""
    client = expression._gateway_client
    return _objects(_trees(client).varyingChildren(expression), client)


def references_of(node: Any) -> list[Any]:
    """Returns the columns that a plan or an expression reads, each once."""
    client = node._gateway_client
    return _objects(_trees(client).references(node), client)


def reads_only(expression: Any, plan: Any) -> bool:
    """Returns whether a plan has all columns that an expression reads."""
    return bool(_trees(plan._gateway_client).readsOnly(expression, plan))


def expressions_of(plan: Any) -> list[Any]:
    """Returns the expressions of an operator."""
    client = plan._gateway_client
    return _objects(_trees(client).expressions(plan), client)


def nodes_of_class(root: Any, name: str) -> list[Any]:
    """Returns the nodes of a class in a tree, a node before those below it."""
    client = root._gateway_client
    return _objects(_trees(client).find(root, name), client)


def expressions_of_class(plan: Any, name: str) -> list[Any]:
    """Returns the expressions of a class in those of an operator."""
    client = plan._gateway_client
    return _objects(_trees(client).findInExpressions(plan, name), client)


def sequence_of(items: Sequence[JavaObject]) -> Any:
    """Returns Java objects, at least one, as a Scala sequence."""
    client: Any = vars(items[0])["_gateway_client"]
    return _trees(client).sequence(_ids(items))


def with_expressions(plan: Any, replaced: Sequence[tuple[Any, Any]]) -> Any:
    """Returns an operator with other expressions in place of some parts of its expressions."""
    pairs = [each for pair in replaced for each in pair]
    return _trees(plan._gateway_client).replaced(plan, _ids(pairs)) if pairs else plan


def with_nodes(root: Any, replaced: Sequence[tuple[Any, Any]]) -> Any:
    """Returns a tree with other nodes in place of some of its nodes."""
    pairs = [each for pair in replaced for each in pair]
    return _trees(root._gateway_client).withNodes(root, _ids(pairs)) if pairs else root


def contains_pattern(node: Any, patterns: str, only_streams: bool) -> bool:
    """Returns whether a node or one below it has one of the patterns, names divided by spaces."""
    return bool(_trees(node._gateway_client).contains(node, patterns, only_streams))


def parts_of(node: Any, patterns: str, only_streams: bool) -> list[tuple[Any, bool]]:
    """Returns the children of a node, each with the result of `contains`."""
    client = node._gateway_client
    texts = iter(_trees(client).parts(node, patterns, only_streams).split())
    return [
        (_object(id_, name, client), next(texts) == "1")
        for id_, name in zip(texts, texts, strict=True)
    ]


def _ids(objects: Sequence[Any]) -> str:
    return " ".join(each._target_id for each in objects)


def _objects(found: str, client: Any) -> list[Any]:
    texts = iter(found.split())
    return [_object(id_, name, client) for id_, name in zip(texts, texts, strict=True)]


def _object(id_: str, name: str, client: Any) -> Any:
    made: Any = JavaObject(id_, client)
    made.__dict__[CLASS_NAME] = name.rstrip("$")
    return made


@lru_cache(maxsize=1)
def _trees(client: Any) -> Any:
    gateway: Any = SparkContext._gateway
    assert gateway is not None and gateway._gateway_client is client
    trees = compile_java(gateway, _TREES)
    trees.apply(gateway.java_gateway_server.getGateway(), None)
    return trees
