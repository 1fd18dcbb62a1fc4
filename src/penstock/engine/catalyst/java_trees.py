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


def to_sequence(convert: Callable[[list[Any]], Any], items: Sequence[Any]) -> Any:
    """Returns Java objects, or values that py4j converts, as a Scala sequence.

    `convert` is the method of PySpark, which takes a message for each item.
    """
    if items and all(isinstance(each, JavaObject) for each in items):
        return sequence_of(items)
    return convert([*items])


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
    trees = compile_java(gateway, METHODS)
    trees.apply(gateway.java_gateway_server.getGateway(), None)
    return trees
