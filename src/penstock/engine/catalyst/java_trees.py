"""Trees of Spark, such as plans and expressions: their nodes, many in one message of py4j."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkContext

from penstock.engine.catalyst.java_functions import compile_java
from penstock.engine.catalyst.java_tree_methods import METHODS

CLASS_NAME = "_penstock_class_name"
"""The attribute of a Java object with the name of its class."""
_CHILDREN = "_penstock_children"
_EXPRESSIONS = "_penstock_expressions"
_FACTS = "_penstock_facts"
NODES_OF_A_MESSAGE = 500
"""The nodes below a node that one message has, and the children of the last ones."""


def items_of(sequence: Any) -> list[Any]:
    """Returns the items of a Scala sequence."""
    client = sequence._gateway_client
    found = _trees(client).items(sequence)
    if found is None:
        return [sequence.apply(index) for index in range(sequence.size())]
    return _objects(found, client)


def children_of(node: Any) -> list[Any]:
    """Returns the children of a node. The first call also reads the nodes below them."""
    if _CHILDREN not in vars(node):
        client = node._gateway_client
        vars(node)[_CHILDREN] = _forest(
            _trees(client).below(node, NODES_OF_A_MESSAGE), _CHILDREN, client
        )
    return [*vars(node)[_CHILDREN]]


def varying_children_of(expression: Any) -> list[Any]:
    """Returns the children of an expression that are not constant."""
    return [child for child in children_of(expression) if not is_constant(child)]


def is_constant(expression: Any) -> bool:
    """Returns whether an expression has one value that Spark computes when it plans a query."""
    known = vars(expression).get(_FACTS)
    return bool(expression.foldable()) if known is None else "c" in known


def is_deterministic(expression: Any) -> bool:
    """Returns whether an expression has the same value for the same row."""
    known = vars(expression).get(_FACTS)
    return bool(expression.deterministic()) if known is None else "d" in known


def is_stream(plan: Any) -> bool:
    """Returns whether a logical plan reads a stream."""
    known = vars(plan).get(_FACTS)
    return bool(plan.isStreaming()) if known is None else "s" in known


def type_name(expression: Any) -> str:
    """Returns the name of the class of an expression's type."""
    return str(_trees(expression._gateway_client).typeName(expression)).rstrip("$")


def references_of(node: Any) -> list[Any]:
    """Returns the columns that a plan or an expression reads, each once."""
    client = node._gateway_client
    return _objects(_trees(client).references(node), client)


def reads_only(expression: Any, plan: Any) -> bool:
    """Returns whether a plan has all columns that an expression reads."""
    return bool(_trees(plan._gateway_client).readsOnly(expression, plan))


def expressions_of(plan: Any) -> list[Any]:
    """Returns the expressions of an operator. The first call also reads the nodes below them."""
    if _EXPRESSIONS not in vars(plan):
        client = plan._gateway_client
        found = _trees(client).expressions(plan, NODES_OF_A_MESSAGE)
        vars(plan)[_EXPRESSIONS] = _forest(found, _CHILDREN, client)
    return [*vars(plan)[_EXPRESSIONS]]


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


def to_sequence(convert: Callable[[list[Any]], Any], items: Sequence[Any]) -> Any:
    """Returns Java objects, or values that py4j converts, as a Scala sequence.

    `convert` is the method of PySpark, which takes a message for each item.
    """
    if items and all(isinstance(each, JavaObject) for each in items):
        return sequence_of(items)
    return convert([*items])


def replace_children(node: Any, new: Sequence[Any]) -> Any:
    """Returns a plan or an expression with as many other children."""
    made = _trees(node._gateway_client).withChildren(node, _ids(new))
    if CLASS_NAME in vars(node):
        vars(made)[CLASS_NAME] = vars(node)[CLASS_NAME]
    return made


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
    """Returns the children of a node, each with the result of `contains_pattern`.

    The first call also reads the parts of the nodes that contain one of the patterns.
    """
    key = f"_penstock_parts {patterns} {only_streams}"
    if key not in vars(node):
        client = node._gateway_client
        found = _trees(client).parts(node, patterns, only_streams)
        vars(node)[key] = _forest(found, key, client)
    return [(part, key in vars(part)) for part in vars(node)[key]]


def _ids(objects: Sequence[Any]) -> str:
    return " ".join(each._target_id for each in objects)


def _objects(found: str, client: Any) -> list[Any]:
    texts = iter(found.split())
    return [_object(*each, client) for each in zip(texts, texts, texts, strict=True)]


def _object(id_: str, name: str, facts: str, client: Any) -> Any:
    made: Any = JavaObject(id_, client)
    made.__dict__[CLASS_NAME] = name.rstrip("$")
    if facts != "?":
        made.__dict__[_FACTS] = facts
    return made


def _forest(found: str, key: str, client: Any) -> list[Any]:
    """Returns the roots of trees. A node has the list of those below it as an attribute."""
    texts = iter(found.split())
    roots: list[Any] = []
    incomplete = [(roots, int(next(texts)))]
    while incomplete:
        nodes, count = incomplete[-1]
        if len(nodes) == count:
            incomplete.pop()
            continue
        node = _object(next(texts), next(texts), next(texts), client)
        nodes.append(node)
        below = next(texts)
        if below != "?":
            children: list[Any] = []
            vars(node)[key] = children
            incomplete.append((children, int(below)))
    return roots


@lru_cache(maxsize=1)
def _trees(client: Any) -> Any:
    gateway: Any = SparkContext._gateway
    assert gateway is not None and gateway._gateway_client is client
    trees = compile_java(gateway, METHODS)
    trees.apply(gateway.java_gateway_server.getGateway(), None)
    return trees
