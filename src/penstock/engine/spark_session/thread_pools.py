"""Pools of threads of Spark, whose threads outlive the session that started them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from penstock.engine.catalyst.java_functions import compile_java
from penstock.engine.catalyst.java_names import names_of_client

_START_WITHOUT_SESSION = """
public static class Start implements Runnable {
  private final Runnable work;
  Start(Runnable work) {
    this.work = work;
  }
  public void run() {
    org.apache.spark.sql.classic.SparkSession.clearActiveSession();
    work.run();
  }
}

public static class Threads implements java.util.concurrent.ThreadFactory {
  private final java.util.concurrent.ThreadFactory threads;
  Threads(java.util.concurrent.ThreadFactory threads) {
    this.threads = threads;
  }
  public Thread newThread(Runnable work) {
    return threads.newThread(new Start(work));
  }
}

public Object apply(Object context, Object unused) {
  java.util.concurrent.ThreadPoolExecutor pool = (java.util.concurrent.ThreadPoolExecutor)
      ((scala.concurrent.impl.ExecutionContextImpl) context).executor();
  pool.setThreadFactory(new Threads(pool.getThreadFactory()));
  return null;
}
"""
"""Replaces the factory of threads of a pool."""


@lru_cache(maxsize=1)
def start_threads_without_session(gateway: Any) -> None:
    """Makes the threads of pools start without an active session. Does nothing when called again.

    A thread inherits the active session of the thread that starts it, with all its views, and holds
    it as long as the pool has work. Spark sets the active session for each part of a query.
    """
    execution: Any = names_of_client(gateway._gateway_client).org.apache.spark.sql.execution
    adaptive, exchange = execution.adaptive, execution.exchange
    companions = (
        getattr(adaptive, "AdaptiveSparkPlanExec$"), getattr(adaptive, "ResultQueryStageExec$"),
        getattr(exchange, "BroadcastExchangeExec$"), getattr(exchange, "ShuffleExchangeExec$"),
        getattr(execution, "SubqueryExec$"),
    )  # fmt: skip
    replace = compile_java(gateway, _START_WITHOUT_SESSION)
    for companion in companions:
        replace.apply(companion.__getattr__("MODULE$").executionContext(), None)
