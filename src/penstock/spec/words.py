"""Names that people bring from other tools, and the right ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from penstock.core.text import nearest

_SYNONYMS: dict[str, tuple[str, ...]] = {
    "from": ("input", "inputs", "source", "sources", "upstream", "upstreams", "depends_on", "to"),
    "type": ("connector", "kind", "plugin", "component"),
    "schema": ("columns", "fields"),
    "sql": ("query", "statement", "select"),
    "brokers": ("bootstrap_servers", "servers", "hosts"),
    "format": ("codec", "encoding", "decoder", "encoder", "serializer"),
    "primary_key": ("key", "keys", "primary_keys", "id"),
    "on_error": ("error_handling", "errors"),
    "mode": ("write_mode", "save_mode"),
    "path": ("file", "files", "location", "directory", "dir"),
    "master": ("spark_master", "cluster"),
    "trigger": ("interval", "trigger_interval", "batch_interval", "schedule"),
    "state": ("checkpoint", "checkpoints", "checkpoint_location", "checkpoint_dir", "state_dir"),
    "spark": ("spark_conf", "conf", "config", "spark_config"),
    "packages": ("jars", "dependencies"),
    "given": ("input", "inputs", "when"),
    "expect": ("expected", "output", "outputs", "then", "expects"),
    "rows": ("records", "values", "data"),
    "payloads": ("messages", "payload", "raw"),
}
_SAME, _CLOSE = 0.9, 0.75


def likely(name: str, right: Iterable[str]) -> str | None:
    """The right name that `name` most likely stands for: nearly the same, or another tool's."""
    candidates = list(dict.fromkeys(right))
    folded = name.lower().replace("-", "_")
    same = difflib.get_close_matches(folded, candidates, n=1, cutoff=_SAME)
    known = [each for each in candidates if folded in _SYNONYMS.get(each, ())]
    close = difflib.get_close_matches(folded, candidates, n=1, cutoff=_CLOSE)
    found = [*same, *known, *close]
    if found:
        return found[0]
    return nearest(name, candidates) if len(candidates) > 1 else None
