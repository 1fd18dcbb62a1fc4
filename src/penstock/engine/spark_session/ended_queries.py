"""Objects of ended queries that Spark and py4j would keep until the end of Java."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark import SparkContext

from penstock.engine.catalyst.java_functions import compile_java
from penstock.engine.spark_session.thread_pools import start_threads_without_session

_FORGET = """
public static class Silent implements Thread.UncaughtExceptionHandler {
  public void uncaughtException(Thread thread, Throwable error) {}
}

private static Object field(Object object, Class type, String name) throws Exception {
  java.lang.reflect.Field field = type.getDeclaredField(name);
  field.setAccessible(true);
  return field.get(object);
}

private static boolean isUseless(Thread thread) throws Exception {
  if (thread == null || !thread.getName().startsWith("Idle Worker Monitor")) {
    return false;
  }
  Object factory = field(thread, thread.getClass(), "$outer");
  return !((Boolean) field(factory, factory.getClass(), "useDaemon")).booleanValue();
}

private static void endMonitors() throws Exception {
  ThreadGroup group = Thread.currentThread().getThreadGroup();
  Thread[] threads = new Thread[2 * group.activeCount() + 16];
  group.enumerate(threads);
  for (int i = 0; i < threads.length; i++) {
    if (isUseless(threads[i])) {
      threads[i].setUncaughtExceptionHandler(new Silent());
      threads[i].interrupt();
    }
  }
}

private static void removeConnections(Object client, String ports) throws Exception {
  java.util.Collection closed = java.util.Arrays.asList(ports.split(","));
  java.util.concurrent.locks.Lock lock = (java.util.concurrent.locks.Lock)
      field(client, py4j.CallbackClient.class, "lock");
  lock.lock();
  try {
    java.util.Iterator connections = ((java.util.Collection)
        field(client, py4j.CallbackClient.class, "connections")).iterator();
    while (connections.hasNext()) {
      py4j.ClientServerConnection connection = (py4j.ClientServerConnection) connections.next();
      java.net.Socket socket = connection.getSocket();
      if (socket == null || closed.contains(String.valueOf(socket.getLocalPort()))) {
        connections.remove();
        connection.shutdown();
      }
    }
  } finally {
    lock.unlock();
  }
}

public Object apply(Object client, Object ports) {
  try {
    endMonitors();
    removeConnections(client, (String) ports);
    return null;
  } catch (Exception error) {
    throw new RuntimeException(error);
  }
}
"""
"""Ends the monitors of planners, and removes the connections that have one of `ports`."""


def forget_ended(ports: Sequence[int]) -> None:
    """Makes Java free what it keeps of queries after their end.

    * For each start of a source Spark starts a thread, the monitor of its idle Python workers. It
      never ends, and holds the session that started it. The planner of a source is no such worker.
    * py4j holds the connections over which queries have called Python. `ports` are those of Java.
    * Threads of pools hold the session that started them.
    """
    gateway: Any = SparkContext._gateway
    start_threads_without_session(gateway)
    client = gateway.java_gateway_server.getCallbackClient()
    compile_java(gateway, _FORGET).apply(client, ",".join(map(str, ports)))
