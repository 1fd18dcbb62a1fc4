"""Flags of Java for Spark."""

from __future__ import annotations

from penstock.core.java import Java

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
