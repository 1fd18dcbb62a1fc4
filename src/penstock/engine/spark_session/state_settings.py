"""Settings of Hadoop for the tasks of stateful operators, which batches share."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_functions import FIELD, compile_java

MAX_USES = 1000
"""The largest number of uses of a broadcast. Spark keeps a reference for each use."""

_JAVA = f"""{FIELD}
public static class Sent {{
  java.util.Properties settings;
  org.apache.spark.broadcast.Broadcast broadcast;
}}

public static class Factory implements org.apache.spark.broadcast.BroadcastFactory {{
  private final org.apache.spark.broadcast.BroadcastFactory factory;
  private final java.lang.reflect.Field properties;
  private final ThreadLocal last = new ThreadLocal();
  private final java.util.Map uses = new java.util.concurrent.ConcurrentHashMap();

  Factory(
      org.apache.spark.broadcast.BroadcastFactory factory, java.lang.reflect.Field properties) {{
    this.factory = factory;
    this.properties = properties;
  }}

  public void initialize(boolean isDriver, org.apache.spark.SparkConf conf) {{
    factory.initialize(isDriver, conf);
  }}

  public org.apache.spark.broadcast.Broadcast newBroadcast(
      Object value, boolean isLocal, long id, boolean serialized, scala.reflect.ClassTag tag) {{
    if (!(value instanceof org.apache.spark.util.SerializableConfiguration) || !isForState()) {{
      return factory.newBroadcast(value, isLocal, id, serialized, tag);
    }}
    java.util.Properties settings =
        settings(((org.apache.spark.util.SerializableConfiguration) value).value());
    Sent sent = (Sent) last.get();
    if (sent == null || !sent.settings.equals(settings) || !use(sent.broadcast.id())) {{
      sent = new Sent();
      sent.settings = (java.util.Properties) settings.clone();
      sent.broadcast = factory.newBroadcast(value, isLocal, id, serialized, tag);
      last.set(sent);
      use(id);
    }}
    return sent.broadcast;
  }}

  private java.util.Properties settings(Object conf) {{
    try {{
      ((org.apache.hadoop.conf.Configuration) conf).size();
      return (java.util.Properties) properties.get(conf);
    }} catch (IllegalAccessException error) {{
      throw new IllegalStateException(error);
    }}
  }}

  private boolean isForState() {{
    StackTraceElement[] frames = new Throwable().getStackTrace();
    for (int i = 0; i < frames.length; i++) {{
      String name = frames[i].getClassName();
      if (name.startsWith("org.apache.spark.sql.")) {{
        return name.startsWith("org.apache.spark.sql.execution.streaming.state.")
            || name.startsWith("org.apache.spark.sql.execution.streaming.operators.stateful.");
      }}
    }}
    return false;
  }}

  private synchronized boolean use(long id) {{
    Integer number = (Integer) uses.get(Long.valueOf(id));
    int next = number == null ? 1 : number.intValue() + 1;
    if (next > {MAX_USES}) {{
      return false;
    }}
    uses.put(Long.valueOf(id), Integer.valueOf(next));
    return true;
  }}

  private synchronized boolean release(long id) {{
    Integer number = (Integer) uses.remove(Long.valueOf(id));
    if (number == null || number.intValue() == 1) {{
      return true;
    }}
    uses.put(Long.valueOf(id), Integer.valueOf(number.intValue() - 1));
    return false;
  }}

  public void unbroadcast(long id, boolean removeFromDriver, boolean blocking) {{
    if (release(id)) {{
      factory.unbroadcast(id, removeFromDriver, blocking);
    }}
  }}

  public void stop() {{
    factory.stop();
  }}
}}

public Object apply(Object context, Object unused) {{
  try {{
    Object environment = field(context.getClass(), "_env").get(context);
    Object manager = field(environment.getClass(), "broadcastManager").get(environment);
    java.lang.reflect.Field factory = field(manager.getClass(), "broadcastFactory");
    factory.set(manager, new Factory(
        (org.apache.spark.broadcast.BroadcastFactory) factory.get(manager),
        field(org.apache.hadoop.conf.Configuration.class, "properties")));
    return null;
  }} catch (Exception error) {{
    throw new RuntimeException(error);
  }}
}}
"""


def share_state_settings(session: SparkSession) -> None:
    """Sends the settings of Hadoop to executors once, as long as they are equal.

    Spark makes a broadcast of them for each stateful operator in each batch, which takes a tenth of
    the CPU of a query of windows on a cluster. The batches of a query, which one thread runs, use
    the same broadcast. A state keeps the settings of its first batch, and does not change them.
    Broadcasts for other tasks, which may change them, remain separate.

    Spark removes a broadcast once for each use of it: the last removal takes effect.
    """
    context: Any = session.sparkContext
    compile_java(context._gateway, _JAVA).apply(context._jsc.sc(), None)
