"""Suggestions for unknown keys: misspelled names and names from other tools."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from penstock.core.errors import SpecError
from penstock.core.text import nearest
from penstock.spec.fields import fields_at
from penstock.spec.models import PipelineSpec
from penstock.spec.runtime_models import Runtime
from penstock.spec.source_map import Route, SourceMap, find_map

SECTIONS = {
    "input": "sources",
    "inputs": "sources",
    "readers": "sources",
    "output": "sinks",
    "outputs": "sinks",
    "destinations": "sinks",
    "targets": "sinks",
    "writers": "sinks",
    "pipeline": "transforms",
    "processors": "transforms",
    "steps": "transforms",
    "operators": "transforms",
    "views": "transforms",
    "queries": "transforms",
    "dlq": "dead_letter",
    "error_output": "dead_letter",
    "dead_letters": "dead_letter",
    "dead_letter_queue": "dead_letter",
    "config": "runtime",
    "settings": "runtime",
    "options": "runtime",
    "engine": "runtime",
    "udf": "functions",
    "udfs": "functions",
    "macros": "functions",
    "imports": "include",
    "import": "include",
    "extends": "include",
    "title": "name",
    "id": "name",
}
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
_SAME = 0.9
FOREIGN_KEYS = {
    "streams": "write the streams of ArkFlow to a file of their own",
    "apiVersion": 'remove the Kubernetes object, and write the keys below "spec" at the top level',
}
"""Keys of files of other tools that no front end reads, and hints."""
_ADVICE = {
    **FOREIGN_KEYS,
    "version": "remove the key; a pipeline file has no version",
    "logging": "set the log level on the command line: penstock run --log-level",
    "logger": "set the log level on the command line: penstock run --log-level",
    "variables": "write ${NAME} in a value to read the environment",
    "vars": "write ${NAME} in a value to read the environment",
    "env": "write ${NAME} in a value to read the environment",
    "secrets": "write ${secret:file/NAME} in a value to read a secret",
}


def closest_option(name: str, options: Iterable[str]) -> str | None:
    """Returns the option closest to `name`: a similar name, or a synonym."""
    candidates = list(dict.fromkeys(options))
    folded = name.lower().replace("-", "_")
    same = difflib.get_close_matches(folded, candidates, n=1, cutoff=_SAME)
    synonyms = [option for option in candidates if folded in _SYNONYMS.get(option, ())]
    return next(iter([*same, *synonyms]), None) or nearest(name, candidates)


def top_level_keys() -> list[str]:
    """Returns the top-level keys of a pipeline."""
    return list(fields_at(PipelineSpec, ()))


def closest_section(source_map: SourceMap, name: str) -> str | None:
    """Returns the top-level key closest to an unknown top-level key."""
    section = SECTIONS.get(name.lower()) or nearest(name, top_level_keys())
    return enclosing_section(source_map, name) or section


def enclosing_section(source_map: SourceMap, name: str) -> str | None:
    """Returns the empty section before an unknown map without indentation."""
    section = None
    for key, value in find_map(source_map, ()).items():
        if key == name:
            return section if isinstance(value, dict) else None
        if key in top_level_keys():
            section = key if value is None else None
    return None


def closest_node(source_map: SourceMap, route: Route) -> str | None:
    """Returns the node of another file whose name is closest to that of the node at `route`."""
    file = source_map.key(route).file
    others = [
        name
        for name in find_map(source_map, route[:-1])
        if source_map.key((*route[:-1], name)).file != file
    ]
    return nearest(str(route[-1]), others)


def unknown_key_error(source_map: SourceMap, name: str) -> SpecError:
    """Returns the error of an unknown top-level key."""
    return SpecError(
        f'unknown key "{name}"',
        code="unknown-key",
        where=source_map.key((name,)),
        hint=_hint(source_map, name),
    )


def _hint(source_map: SourceMap, name: str) -> str:
    if section := enclosing_section(source_map, name):
        return f'indent the key below "{section}"'
    if name in _ADVICE:
        return _ADVICE[name]
    if name.lower() in SECTIONS:
        return f'write "{SECTIONS[name.lower()]}" instead'
    if key := nearest(name, top_level_keys()):
        return f'did you mean "{key}"?'
    if name in fields_at(Runtime, ()):
        return 'move the key below "runtime"'
    return f"known: {', '.join(top_level_keys())}"
