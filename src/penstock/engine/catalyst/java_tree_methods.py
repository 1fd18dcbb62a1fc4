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
  text.append(name.isEmpty() ? "?" : name).append(' ').append(facts(item)).append(' ');
}

private static String facts(Object item) {
  try {
    if (item instanceof org.apache.spark.sql.catalyst.expressions.Expression) {
      org.apache.spark.sql.catalyst.expressions.Expression expression =
          (org.apache.spark.sql.catalyst.expressions.Expression) item;
      return "=" + (expression.foldable() ? "c" : "") + (expression.deterministic() ? "d" : "");
    }
    if (item instanceof org.apache.spark.sql.catalyst.plans.logical.LogicalPlan) {
      return ((org.apache.spark.sql.catalyst.plans.logical.LogicalPlan) item).isStreaming()
          ? "=s" : "=";
    }
  } catch (Exception unresolved) {
    return "?";
  }
  return "?";
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

private static scala.collection.Seq childrenOf(Object node) {
  return ((org.apache.spark.sql.catalyst.trees.TreeNode) node).children();
}

private static void push(java.util.ArrayDeque pending, scala.collection.Seq children) {
  scala.collection.Iterator items = children.reverseIterator();
  while (items.hasNext()) {
    pending.push(items.next());
  }
}

public String below(Object root, int limit) {
  return trees(childrenOf(root), limit);
}

public String expressions(Object plan, int limit) {
  return trees(((org.apache.spark.sql.catalyst.plans.QueryPlan) plan).expressions(), limit);
}

private String trees(scala.collection.Seq children, int limit) {
  StringBuilder text = new StringBuilder();
  java.util.ArrayDeque pending = new java.util.ArrayDeque();
  text.append(children.size()).append(' ');
  push(pending, children);
  for (int count = 0; !pending.isEmpty(); count++) {
    Object node = pending.pop();
    add(node, text);
    if (count < limit) {
      children = childrenOf(node);
      text.append(children.size()).append(' ');
      push(pending, children);
    } else {
      text.append("? ");
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
    push(pending, childrenOf(node));
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

public Object withChildren(Object node, String ids) {
  return ((org.apache.spark.sql.catalyst.trees.TreeNode) node).withNewChildren(
      org.apache.spark.api.python.PythonUtils.toSeq(objects(ids)));
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

public String parts(Object root, String names, boolean onlyStreams) {
  StringBuilder text = new StringBuilder();
  java.util.ArrayDeque pending = new java.util.ArrayDeque();
  scala.collection.Seq children = childrenOf(root);
  text.append(children.size()).append(' ');
  push(pending, children);
  while (!pending.isEmpty()) {
    Object node = pending.pop();
    add(node, text);
    if (contains(node, names, onlyStreams)) {
      children = childrenOf(node);
      text.append(children.size()).append(' ');
      push(pending, children);
    } else {
      text.append("? ");
    }
  }
  return text.toString();
}

public String typeName(Object expression) {
  return ((org.apache.spark.sql.catalyst.expressions.Expression) expression).dataType().getClass()
      .getSimpleName();
}
"""
"""Methods with the IDs of Java objects in py4j. Those that they return have the names of classes
and facts: after `=`, `c` for a constant, `d` for a deterministic expression, and `s` for a stream.

`items` returns null for a sequence with a value that py4j converts, such as a text. `below`,
`expressions` and `parts` return trees: their number, then each node, before those below it, with
its number of children, or `?` if they are left out.
"""
