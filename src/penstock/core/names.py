"""Names of nodes and pipelines, for use in SQL, paths and metrics; names in SQL."""

from __future__ import annotations

import re
from zlib import crc32

NODE_NAME = r"^[A-Za-z][A-Za-z0-9_]*$"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_PIPELINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
MAX_LENGTH = 63
_SINKS = "sinks."


def node_name_problem(name: str) -> str | None:
    """Returns the reason that `name` is not a valid name of a node, or None."""
    if len(name) > MAX_LENGTH:
        return f"a name has at most {MAX_LENGTH} characters"
    if not _NAME.match(name):
        return "a name starts with a letter and has letters, digits and underscores"
    return None


def quote_name(name: str) -> str:
    """Returns a name in backticks, as Spark SQL reads any name."""
    return f"`{name.replace('`', '``')}`"


def quote_standard_name(name: str) -> str:
    """Returns a name in double quotes, as standard SQL reads any name."""
    return '"' + name.replace('"', '""') + '"'


def standard_literal(text: str) -> str:
    """Returns a text in single quotes, as a literal of standard SQL without escapes."""
    return "'" + text.replace("'", "''") + "'"


def derived_name(name: str, suffix: str) -> str:
    """Returns the name of a node that belongs to a node, with a checksum in place of a long end."""
    if len(name) + len(suffix) <= MAX_LENGTH or len(name) > MAX_LENGTH:
        return name + suffix
    checksum = f"_{crc32(name.encode()):08x}"
    return name[: MAX_LENGTH - len(checksum) - len(suffix)] + checksum + suffix


def sink_key(name: str) -> str:
    """Returns the key of a sink whose name a source or a transform has, too."""
    return f"{_SINKS}{name}"


def written_name(key: str) -> str:
    """Returns the name in the file of the node with a key."""
    return key.removeprefix(_SINKS)


def pipeline_name_problem(name: str) -> str | None:
    """Returns the reason that `name` is not a valid name of a pipeline, or None."""
    if len(name) > MAX_LENGTH:
        return f"a name has at most {MAX_LENGTH} characters"
    if not _PIPELINE.match(name):
        return "a pipeline's name has letters, digits, underscores, dots and hyphens"
    return None
