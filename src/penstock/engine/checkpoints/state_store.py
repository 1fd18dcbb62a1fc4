"""State stores of checkpoints: the provider of a query's state, and its move to RocksDB.

Spark takes the provider from the last entry of the offset log. Files of both providers may share
the directory of a state, because their names differ. A move writes the files of RocksDB beside
the others, and then replaces the entry: a crash before leaves the former state.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from penstock.core.files.durable import sync
from penstock.engine.checkpoints.offset_log import OffsetLog, last_number

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_RUN_ID = "sql.streaming.queryId", "sql.streaming.runId"
_STAGE = "penstock-rocksdb"
_ROCKSDB_FILES = ("*.zip", "*.changelog", "SSTs", "logs")
_MEMORY_FILES = ("*.delta", "*.snapshot")

_COPY = """
public Object apply(Object stores, Object unused) {
  Object[] both = (Object[]) stores;
  org.apache.spark.sql.execution.streaming.state.ReadStateStore source =
      (org.apache.spark.sql.execution.streaming.state.ReadStateStore) both[0];
  org.apache.spark.sql.execution.streaming.state.StateStore target =
      (org.apache.spark.sql.execution.streaming.state.StateStore) both[1];
  scala.collection.Iterator rows = (scala.collection.Iterator) source.iterator("default");
  long count = 0;
  while (rows.hasNext()) {
    org.apache.spark.sql.execution.streaming.state.UnsafeRowPair row =
        (org.apache.spark.sql.execution.streaming.state.UnsafeRowPair) rows.next();
    target.put(row.key(), row.value(), "default");
    count++;
  }
  target.commit();
  return Long.valueOf(count);
}
"""
"""Copies the rows of a store to another one. Returns their number.

One call for all rows: a call from Python for each row would take a millisecond.
"""


@dataclass(frozen=True)
class _Store:
    """A state store of an operator. `prefix` is the number of key columns of its prefix scans."""

    operator: int
    name: str
    partitions: int
    prefix: int


class StateStore:
    """The state store of a checkpoint on a local disk."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._log = OffsetLog(checkpoint)

    @property
    def in_memory(self) -> bool:
        """Whether the query has state, and keeps it in memory."""
        planned = self._log.planned
        if planned is None or not (self._checkpoint / "state").exists():
            return False
        return self._log.settings(planned).get(PROVIDER) != ROCKSDB

    def move_to_rocksdb(self, session: SparkSession) -> int:
        """Copies the state after the last committed batch to RocksDB. Returns its rows.

        The query must not run. It continues with RocksDB at its next start.
        """
        stage = self._checkpoint / _STAGE
        shutil.rmtree(stage, ignore_errors=True)
        self._remove(_ROCKSDB_FILES)
        committed, planned = last_number(self._checkpoint / "commits"), self._log.planned
        assert planned is not None
        rows = 0
        if committed is not None:
            copy = _Copy(session, self._checkpoint, stage, committed)
            for store in self._stores():
                numbers = self._partitions(store)
                rows += sum(copy.partition(store, number) for number in numbers)
            self._adopt(stage)
        self._log.replace_setting(planned, PROVIDER, ROCKSDB)
        self._remove(_MEMORY_FILES)
        return rows

    def _stores(self) -> Iterator[_Store]:
        for path in sorted((self._checkpoint / "state").glob("*/_metadata/metadata")):
            described = json.loads(path.read_text("utf-8").split("\n", 1)[1])
            operator = described["operatorInfo"]["operatorId"]
            for store in described["stateStoreInfo"]:
                yield _Store(
                    operator, store["storeName"], store["numPartitions"], store["numColsPrefixKey"]
                )

    def _partitions(self, store: _Store) -> list[int]:
        """Returns the partitions of a store. An operator without a key has only the first one."""
        state = self._checkpoint / "state" / str(store.operator)
        numbers = list(range(store.partitions))
        return numbers if any((state / str(n)).exists() for n in numbers[1:]) else [0]

    def _adopt(self, stage: Path) -> None:
        """Moves the files of RocksDB to the state of the query, durably."""
        folders = {}
        for path in sorted((stage / "state").rglob("*")):
            if path.is_file():
                target = self._checkpoint / path.relative_to(stage)
                target.parent.mkdir(parents=True, exist_ok=True)
                sync(path)
                path.replace(target)
                folders.update(dict.fromkeys([target.parent, target.parent.parent]))
        for folder in folders:
            sync(folder)
        shutil.rmtree(stage)

    def _remove(self, patterns: tuple[str, ...]) -> None:
        for pattern in patterns:
            for path in [*(self._checkpoint / "state").rglob(pattern)]:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
                    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


class _Copy:
    """A copy of the state of a checkpoint after a batch, by Spark's own state stores."""

    def __init__(self, session: SparkSession, checkpoint: Path, stage: Path, batch: int) -> None:
        gateway: Any = session.sparkContext._gateway
        self._gateway = gateway
        self._java = gateway.jvm.org.apache.spark.sql.execution.streaming.state
        self._none = gateway.jvm.scala.Option.empty()
        self._checkpoint, self._stage, self._batch = checkpoint, stage, batch
        state: Any = session._jsparkSession.sessionState()
        self._run = gateway.jvm.java.util.UUID.randomUUID()
        self._hadoop = state.newHadoopConf()
        for name in _RUN_ID:
            self._hadoop.set(name, self._run.toString())
        self._memory = self._conf(state, _MEMORY)
        self._rocksdb = self._conf(state, ROCKSDB)

    def _conf(self, state: Any, provider: str) -> Any:
        conf = state.conf().clone()
        conf.setConfString(PROVIDER, provider)
        return self._java.StateStoreConf.apply(conf)

    def partition(self, store: _Store, number: int) -> int:
        """Copies a partition of a store. Returns the number of its rows."""
        source = self._provider(self._checkpoint, store, number, self._memory)
        target = self._provider(self._stage, store, number, self._rocksdb)
        try:
            version = self._batch + 1
            before = source.getReadStore(version, self._none)
            # The store commits as the version after that one, with no rows from before.
            after = target.getStore(self._batch, self._none, True, True)
            stores = self._gateway.new_array(self._gateway.jvm.java.lang.Object, 2)
            stores[0], stores[1] = before, after
            rows = int(_copier(self._gateway).apply(stores, None))
            before.abort()
            return rows
        finally:
            source.close()
            target.close()

    def _provider(self, checkpoint: Path, store: _Store, number: int, conf: Any) -> Any:
        key, value = self._schemas(store)
        java = self._java
        encoder = (
            java.PrefixKeyScanStateEncoderSpec(key, store.prefix)
            if store.prefix
            else java.NoPrefixKeyStateEncoderSpec(key)
        )
        identity = self._identity(checkpoint, store, number)
        return java.StateStoreProvider.createAndInit(
            identity, key, value, encoder, False, conf, self._hadoop, False, self._none
        )

    def _identity(self, checkpoint: Path, store: _Store, number: int) -> Any:
        root = (checkpoint / "state").as_uri()
        identity = self._java.StateStoreId(root, store.operator, number, store.name)
        return self._java.StateStoreProviderId(identity, self._run)

    def _schemas(self, store: _Store) -> tuple[Any, Any]:
        """Returns the types of the keys and the values of a store."""
        first = self._identity(self._checkpoint, store, 0)
        nil = getattr(self._gateway.jvm.scala.collection.immutable, "Nil$").__getattr__("MODULE$")
        checker = self._java.StateSchemaCompatibilityChecker(
            first, self._hadoop, nil, self._none, False
        )
        schema = checker.readSchemaFile().head()
        return schema.keySchema(), schema.valueSchema()


@lru_cache(maxsize=1)
def _copier(gateway: Any) -> Any:
    """Returns a Java function of the text `_COPY`.

    Py4J finds methods by the name of the class, so each compilation has a name of its own.
    """
    java = gateway.jvm
    compiler = java.org.codehaus.janino.ClassBodyEvaluator()
    compiler.setClassName(f"penstock.CopyState{uuid4().hex}")
    compiler.setParentClassLoader(java.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    interfaces = gateway.new_array(java.java.lang.Class, 1)
    interfaces[0] = java.java.lang.Class.forName("java.util.function.BiFunction")
    compiler.setImplementedInterfaces(interfaces)
    return compiler.createInstance(java.java.io.StringReader(_COPY))
