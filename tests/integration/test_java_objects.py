"""Names, objects and views of the JVM that Python uses with fewer messages."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest
from py4j.java_gateway import JVMView, java_import
from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_names import _CLASSES_OF_PYSPARK
from penstock.engine.catalyst.java_releases import RELEASED_TOGETHER
from penstock.engine.catalyst.views import create_view

pytestmark = pytest.mark.spark


def test_kept_classes_are_those_of_pyspark(penstock_spark: SparkSession) -> None:
    view: Any = penstock_spark._jvm
    java_import(view, "org.apache.spark.sql.execution.streaming.sources.*")
    for name in _CLASSES_OF_PYSPARK:
        assert getattr(view, name)._fqn == JVMView.__getattr__(view, name)._fqn


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
