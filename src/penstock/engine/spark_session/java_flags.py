"""Flags of Java for Spark."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress

from penstock.core.java import Java
from penstock.core.units import byte_count

QUICK = "-XX:TieredStopAtLevel=1"
"""Only the C1 compiler, which is faster in a run of seconds."""
LATE_C2 = (
    "-XX:Tier4InvocationThreshold=200000",
    "-XX:Tier4MinInvocationThreshold=100000",
    "-XX:Tier4CompileThreshold=500000",
    "-XX:Tier4BackEdgeThreshold=5000000",
)
"""The C2 compiler only after millions of rows."""
LATE = (
    "-XX:Tier3InvocationThreshold=1000",
    "-XX:Tier3MinInvocationThreshold=500",
    "-XX:Tier3CompileThreshold=10000",
    "-XX:Tier3BackEdgeThreshold=100000",
    *LATE_C2,
)
"""Both compilers only for methods that run often."""
_STACK = "16m"
"""The maximum stack of a thread: Spark parses and optimizes expressions recursively."""
_SMALL_HEAP = 4 * 2**30
"""Below this size the serial collector takes a fifth less CPU than G1."""
_SMALL_YOUNG = "-XX:NewSize=64m"
"""Half of the young generation of Java: a run that waits for rows keeps all of it in memory. It
grows with the heap. Runs that end have the size of Java, with which they collect less often.
"""
_PERIODIC = "-XX:G1PeriodicGCInterval=60000"
"""A collection in each minute without another one returns the unused heap of an idle run."""
_TRIM = "-XX:TrimNativeHeapInterval=10000"
"""Memory that the compilers have freed returns to the system."""
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")

_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_NETTY = (
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)


def spark_flags(java: Java) -> list[str]:
    """Returns the flags for Spark, except the vector module: some runtimes lack it."""
    flags = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    if java.major >= 24:
        flags.append("--sun-misc-unsafe-memory-access=allow")
    return [*flags, "--enable-native-access=ALL-UNNAMED", *_NETTY]


def heap_flags(heap: int) -> list[str]:
    """Returns the flags for a heap of this size: its collector and the stacks of threads."""
    return [f"-XX:+Use{'Serial' if heap < _SMALL_HEAP else 'G1'}GC", f"-Xss{_STACK}"]


def idle_flags(java: Java, heap: int) -> list[str]:
    """Returns the flags for a run without end, which is idle most of the time."""
    flags = [_SMALL_YOUNG if heap < _SMALL_HEAP else _PERIODIC]
    if java.major >= 22 and sys.platform == "linux":
        flags.append(_TRIM)
    return flags


def executor_flags(conf: Mapping[str, str], is_quick: bool) -> list[str]:
    """Returns the default flags of executors, which those in the settings of a user follow.

    A second collector would be an error of Java. Each executor compiles the same methods, and runs
    only its share of the tasks: with the thresholds of Java the C2 compiler takes a large part of
    the CPU of an executor in the first hundred batches, and with later ones of the C1 compiler the
    methods of a task are interpreted for as long.
    """
    heap = 0
    with suppress(ValueError):  # Spark reports the wrong size.
        heap = byte_count(conf.get("spark.executor.memory", "1g"))
    flags = [*heap_flags(heap), *([QUICK] if is_quick else LATE_C2)]
    if _COLLECTOR.search(conf.get("spark.executor.extraJavaOptions", "")):
        flags = [flag for flag in flags if not _COLLECTOR.match(flag)]
    return flags
