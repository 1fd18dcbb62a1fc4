"""Broadcasts of the settings of Hadoop to the tasks of stateful operators."""

from __future__ import annotations

import re
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from py4j.protocol import Py4JJavaError

from penstock import app
from penstock.engine.spark_session.state_settings import (
    MAX_USES,
    remove_unused_defaults,
    share_state_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STATE = "org.apache.spark.sql.execution.streaming.state"
CALLER = """
private static Object get(Object owner, String name) throws Exception {
  java.lang.reflect.Field field = owner.getClass().getDeclaredField(name);
  field.setAccessible(true);
  return field.get(owner);
}

public Object apply(Object context, Object conf) {
  try {
    if (conf instanceof String) {
      Object factory = get(get(get(context, "_env"), "broadcastManager"), "broadcastFactory");
      return conf.equals("uses") ? get(factory, "uses") : factory;
    }
    Class owner = Class.forName("org.apache.spark.util.SerializableConfiguration");
    Class[] types = {Class.forName("org.apache.spark.SparkContext"), conf.getClass()};
    Object[] values = {context, conf};
    return owner.getMethod("broadcast", types).invoke(null, values);
  } catch (Exception error) {
    throw new RuntimeException(error);
  }
}
"""
COUNTS = """\
  counts: {type: sql, sql: "SELECT count(*) AS n FROM rows GROUP BY window(at, '1 second')"}
"""
JOIN = """\
  counts:
    type: sql
    sql: |
      SELECT rows.id FROM rows FULL OUTER JOIN others
      ON rows.id = others.id AND others.at BETWEEN rows.at AND rows.at + INTERVAL 1 MINUTE
"""
PIPELINE = """\
runtime: {state: state}
sources:
  rows: &rows
    type: generate
    rows: 40
    max_records: 5
    fields: {id: sequence, at: {type: timestamp, start_time: "2026-01-01T00:00:00Z", step: 1s}}
    watermark: {column: at, delay: 1 second}
OTHERStransforms:
TRANSFORMSsinks:
  out: {type: blackhole, from: counts}
"""


class Caller:
    """A Java class that makes broadcasts."""

    def __init__(self, spark: SparkSession, package: str) -> None:
        session: Any = spark
        self._java, self._context = session._jvm, session._jsc.sc()
        gateway: Any = spark.sparkContext._gateway
        compiler = self._java.org.codehaus.janino.ClassBodyEvaluator()
        compiler.setClassName(f"{package}.Caller{uuid4().hex}")
        interfaces = gateway.new_array(self._java.java.lang.Class, 1)
        interfaces[0] = self._java.java.lang.Class.forName("java.util.function.BiFunction")
        compiler.setImplementedInterfaces(interfaces)
        self._caller = compiler.createInstance(self._java.java.io.StringReader(CALLER))

    def settings(self, **values: str) -> Any:
        settings = self._java.org.apache.hadoop.conf.Configuration(False)
        for name, value in values.items():
            settings.set(name, value)
        return settings

    def broadcast(self, settings: Any) -> Any:
        return self._caller.apply(self._context, settings)

    def of_session(self, name: str) -> Any:
        """Returns the `factory` of broadcasts, or the number of `uses` by broadcast."""
        return self._caller.apply(self._context, name)

    def as_task(self, broadcast: Any) -> Any:
        """Returns a broadcast as a task receives it, which reads the value from the blocks."""
        java = self._java.java.io
        content = java.ByteArrayOutputStream()
        java.ObjectOutputStream(content).writeObject(broadcast)
        return java.ObjectInputStream(java.ByteArrayInputStream(content.toByteArray())).readObject()


@pytest.fixture
def caller(penstock_spark: SparkSession) -> Caller:
    """A local master has no tuned settings by itself."""
    made = Caller(penstock_spark, STATE)
    if not made.of_session("factory").getClass().getName().startswith("penstock."):
        share_state_settings(penstock_spark)
    made.broadcast(made.settings(test=uuid4().hex))
    return made


def test_equal_settings_of_states_are_one_broadcast(caller: Caller) -> None:
    first = caller.broadcast(caller.settings(a="1", b="2"))
    assert caller.broadcast(caller.settings(b="2", a="1")).id() == first.id()
    other = caller.broadcast(caller.settings(a="1", b="3"))
    assert other.id() != first.id()
    assert other.value().value().get("b") == "3"
    assert first.value().value().get("b") == "2"
    assert caller.broadcast(caller.settings(a="1")).id() != other.id()


def test_settings_that_change_later_are_compared_as_they_were(caller: Caller) -> None:
    settings = caller.settings(a="1")
    first = caller.broadcast(settings)
    settings.set("a", "2")
    assert caller.broadcast(settings).id() != first.id()


def test_threads_have_broadcasts_of_their_own(caller: Caller) -> None:
    ids = [caller.broadcast(caller.settings(a="1")).id()]
    thread = threading.Thread(
        target=lambda: ids.append(caller.broadcast(caller.settings(a="1")).id())
    )
    thread.start()
    thread.join()
    assert ids[0] != ids[1]


@pytest.mark.usefixtures("caller")
def test_settings_of_other_tasks_are_separate(penstock_spark: SparkSession) -> None:
    """A task of a format changes the settings of its broadcast."""
    caller = Caller(penstock_spark, "org.apache.spark.sql.execution.datasources")
    settings = caller.settings(a="1")
    assert caller.broadcast(settings).id() != caller.broadcast(settings).id()


def test_a_broadcast_has_a_limited_number_of_uses(caller: Caller) -> None:
    settings = caller.settings(a="1")
    ids = [caller.broadcast(settings).id() for _ in range(MAX_USES + 1)]
    assert len(set(ids[:-1])) == 1
    assert ids[-1] != ids[0]


@pytest.mark.parametrize("removals", [2, 3])
def test_the_last_removal_of_a_broadcast_takes_effect(caller: Caller, removals: int) -> None:
    broadcasts = [caller.broadcast(caller.settings(a="1")) for _ in range(3)]
    received = caller.as_task(broadcasts[0])
    for _ in range(removals):
        caller.of_session("factory").unbroadcast(received.id(), True, True)
    with pytest.raises(Py4JJavaError) if removals == 3 else nullcontext() as failure:
        assert received.value().value().get("a") == "1"
    assert failure is None or f"broadcast_{received.id()}" in str(failure.value)


@pytest.mark.parametrize(
    ("others", "transforms"),
    [("", COUNTS), ("  others: *rows\n", JOIN)],
    ids=["window", "join"],
)
def test_batches_of_a_query_share_the_settings(
    tmp_path: Path, penstock_spark: SparkSession, caller: Caller, others: str, transforms: str
) -> None:
    (tmp_path / "p.yaml").write_text(
        PIPELINE.replace("TRANSFORMS", transforms).replace("OTHERS", others)
    )
    uses, most, ended = caller.of_session("uses"), 0, threading.Event()
    last = caller.broadcast(caller.settings(test=str(tmp_path))).id()

    def watch() -> None:
        nonlocal most
        while not ended.wait(0.02):
            found = re.findall(r"(\d+)=(\d+)", uses.toString())
            most = max([most, *(int(number) for id_, number in found if int(id_) > last)])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        outcome = app.run(app.plan(tmp_path / "p.yaml"), spark=penstock_spark.newSession())
    finally:
        ended.set()
        thread.join()
    assert not outcome.errors
    assert most >= 4


def test_unused_defaults_are_removed(penstock_spark: SparkSession) -> None:
    spark: Any = penstock_spark
    settings = spark._jvm.org.apache.hadoop.conf.Configuration()
    assert settings.get("yarn.resourcemanager.address") is not None
    settings.set("mapreduce.map.memory.mb", "1234")
    remove_unused_defaults(penstock_spark, settings)
    assert settings.get("yarn.resourcemanager.address") is None
    assert settings.get("mapreduce.reduce.memory.mb") is None
    assert settings.get("mapreduce.map.memory.mb") == "1234"
    assert settings.get("mapreduce.output.fileoutputformat.compress") == "false"
    assert settings.get("fs.s3a.impl") is not None
