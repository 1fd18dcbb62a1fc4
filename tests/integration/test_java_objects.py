"""Names, objects and views of the JVM that Python uses with fewer messages."""

from __future__ import annotations

import gc
import re
import threading
import time
from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from py4j.java_gateway import JVMView, java_import
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_names import _CLASSES_OF_PYSPARK
from penstock.engine.catalyst.java_releases import RELEASED_TOGETHER
from penstock.engine.catalyst.java_trees import (
    NODES_OF_A_MESSAGE,
    children_of,
    contains_pattern,
    expressions_of,
    items_of,
    nodes_of_class,
    parts_of,
)
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name
from penstock.engine.catalyst.views import create_view

pytestmark = pytest.mark.spark


def test_kept_classes_are_those_of_pyspark(penstock_spark: SparkSession) -> None:
    view: Any = penstock_spark._jvm
    java_import(view, "org.apache.spark.sql.execution.streaming.sources.*")
    for name in _CLASSES_OF_PYSPARK:
        assert getattr(view, name)._fqn == JVMView.__getattr__(view, name)._fqn


def test_arguments_are_converted_as_by_py4j(
    penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain values are passed without the converters of py4j, all others with them."""
    view: Any = penstock_spark._jvm
    text_of = view.java.util.Objects.toString
    values = (
        None, True, 7, 2**40, 1.5, "é", b"b", Decimal("1.20"), [1, "x", [None]], {"k": [1]}, {3},
        date(2026, 1, 2), datetime(2026, 1, 2, 3), timedelta(1), np.int32(4), np.array([1, 2]),
    )  # fmt: skip
    found = [re.sub("@.*", "", text_of(value)) for value in values]
    (converters,) = view._gateway_client.converters
    monkeypatch.setattr(view._gateway_client, "converters", converters._converters)
    assert found == [re.sub("@.*", "", view.java.util.Objects.toString(value)) for value in values]


def test_objects_are_released(penstock_spark: SparkSession) -> None:
    gateway: Any = penstock_spark.sparkContext._gateway
    known = gateway.java_gateway_server.getGateway().getBindings()
    objects = [known.keySet() for _ in range(10 * RELEASED_TOGETHER)]
    before = known.size()
    objects.clear()
    gc.collect()
    deadline = time.monotonic() + 60
    while known.size() > before - 9 * RELEASED_TOGETHER:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_view_is_replaced(penstock_spark: SparkSession) -> None:
    session = penstock_spark.newSession()
    for number in range(2):
        create_view(session.range(number, number + 1), "a view")
        (row,) = session.table("`a view`").collect()
        assert row.id == number


def test_the_gateway_is_not_released(penstock_spark: SparkSession) -> None:
    gateway: Any = penstock_spark.sparkContext._gateway
    client: Any = gateway._gateway_client
    for _ in range(RELEASED_TOGETHER):
        client.garbage_collect_object("GATEWAY_SERVER", enqueue=False)
    assert gateway.java_gateway_server.getGateway().isStarted()


def test_a_tree_is_read_in_few_messages(penstock_spark: SparkSession) -> None:
    numbers = penstock_spark.range(3)
    frame = numbers.union(numbers.selectExpr("id + (id * 2 + id) AS id")).where("id > 1")
    plan = analyzed_plan(frame)
    (union,) = children_of(plan)
    assert (class_name(plan), class_name(union)) == ("Filter", "Union")
    assert parts_of(plan, "FILTER PROJECT", False) == [(union, True)]
    below = parts_of(union, "FILTER PROJECT", False)
    assert [(class_name(part), contains) for part, contains in below] == [
        ("Range", False), ("Project", True),
    ]  # fmt: skip
    assert contains_pattern(plan, "FILTER PROJECT", False)
    assert not contains_pattern(plan, "FILTER PROJECT", True)
    (alias,) = expressions_of(below[1][0])
    outer, inner = nodes_of_class(alias, "Add")
    assert (str(outer.sql()), str(inner.sql())) == (
        "(id + ((id * CAST(2 AS BIGINT)) + id))", "((id * CAST(2 AS BIGINT)) + id)",
    )  # fmt: skip
    assert [str(each.name()) for each in items_of(plan.output())] == ["id"]
    utils: Any = penstock_spark._jvm.org.apache.spark.api.python.PythonUtils
    assert items_of(utils.toSeq(["a", 1, None])) == ["a", 1, None]


def test_all_nodes_of_a_large_tree_are_read(penstock_spark: SparkSession) -> None:
    """A message has the first nodes; the children of others are read later."""
    values = ", ".join(["abs(id)"] * NODES_OF_A_MESSAGE)
    (alias,) = expressions_of(analyzed_plan(penstock_spark.range(1).selectExpr(f"array({values})")))
    names, pending = Counter[str](), [alias]
    while pending:
        node = pending.pop()
        names[class_name(node)] += 1
        pending += children_of(node)
    assert names["Abs"] == names["AttributeReference"] == NODES_OF_A_MESSAGE


def test_methods_are_found_once_for_all_threads(penstock_spark: SparkSession) -> None:
    java: Any = penstock_spark._jvm
    classes = java.java.lang.Class
    caches: list[int] = []

    def cache() -> None:
        field = classes.forName("py4j.reflection.ReflectionEngine").getDeclaredField("cacheHolder")
        field.setAccessible(True)
        caches.append(java.java.lang.System.identityHashCode(field.get(None).get()))

    threads = [threading.Thread(target=cache) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    assert caches[0] == caches[1]


def test_sequences_are_those_of_pyspark(penstock_spark: SparkSession) -> None:
    view: Any = penstock_spark._jvm
    utils = view.PythonUtils
    one, two = (view.java.util.Optional.of(text) for text in ("one", "two"))
    for items in ([], [one], [one, two], ["x", "y"], [1, one]):
        expected = JVMView.__getattr__(view, "PythonUtils").toSeq(items)
        assert utils.toSeq(items).equals(expected)


def test_extension_of_mllib_is_omitted(penstock_spark: SparkSession) -> None:
    """Its functions need a tenth of the CPU seconds of a start. Its formats are there."""
    view: Any = penstock_spark._jvm
    catalyst = view.org.apache.spark.sql.catalyst
    registry = getattr(catalyst.analysis, "FunctionRegistry$").__getattr__("MODULE$")
    name = catalyst.FunctionIdentifier("vector_to_array")
    assert registry.internal().lookupFunction(name).isEmpty()
    loader = view.java.lang.Thread.currentThread().getContextClassLoader()
    assert not loader.getClass().getName().startswith("penstock")
    with pytest.raises(AnalysisException, match=r"[Pp]ath"):
        penstock_spark.read.format("libsvm").load("no-such-file")
