"""Java in this process, for clients that are Java libraries."""

from penstock.sdk.java.jars import Jars
from penstock.sdk.java.jvm import class_loader, java_class

__all__ = ["Jars", "class_loader", "java_class"]
