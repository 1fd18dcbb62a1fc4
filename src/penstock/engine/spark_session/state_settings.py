"""Settings of Hadoop that tasks of stateful operators receive on a cluster."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_functions import FIELD, compile_java

MAX_USES = 1000
"""The largest number of uses of a broadcast. Spark keeps a reference for each use."""

_REMOVE = f"""{FIELD}
public Object apply(Object conf, Object unused) {{
  try {{
    ((org.apache.hadoop.conf.Configuration) conf).size();
    java.util.Map origins = (java.util.Map)
        field(org.apache.hadoop.conf.Configuration.class, "updatingResource").get(conf);
    java.util.Properties values = (java.util.Properties)
        field(org.apache.hadoop.conf.Configuration.class, "properties").get(conf);
    java.util.Iterator names = values.stringPropertyNames().iterator();
    while (names.hasNext()) {{
      String name = (String) names.next();
      String[] origin = (String[]) origins.get(name);
      if (origin != null && origin.length == 1
          && (origin[0].equals("yarn-default.xml") || origin[0].equals("mapred-default.xml"))
          && !name.matches("mapreduce[.](input|output|fileoutput).*")) {{
        values.remove(name);
      }}
    }}
    return null;
  }} catch (Exception error) {{
    throw new RuntimeException(error);
  }}
}}
"""

_SHARE = f"""{FIELD}
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


def tune_state_settings(session: SparkSession) -> None:
    """Saves work for the settings of Hadoop that executors receive for each state of a batch.

    Call before the origins of the settings are removed.
    """
    context: Any = session.sparkContext
    if not context.master.startswith("yarn"):
        remove_unused_defaults(session, context._jsc.hadoopConfiguration())
    share_state_settings(session)


def remove_unused_defaults(session: SparkSession, settings: Any) -> None:
    """Removes the defaults of YARN and MapReduce, which are two thirds of the settings.

    Those of inputs and outputs remain, as file formats use them, and all values that a user sets.
    """
    compile_java(session.sparkContext._gateway, _REMOVE).apply(settings, None)


def share_state_settings(session: SparkSession) -> None:
    """Sends the settings of Hadoop to executors once, as long as they are equal.

    Spark makes a broadcast of them for each stateful operator in each batch. The batches of a
    query, which one thread runs, use the same broadcast. A state keeps the settings of its first
    batch, and does not change them. Broadcasts for other tasks, which may change them, remain
    separate.

    Spark removes a broadcast once for each use of it: the last removal takes effect.
    """
    context: Any = session.sparkContext
    compile_java(context._gateway, _SHARE).apply(context._jsc.sc(), None)
