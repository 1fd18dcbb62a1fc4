"""The Java source of the methods in `java_trees.py`, compiled when Spark starts."""

from __future__ import annotations

METHODS = """
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
