"""Descriptions of the parts of a pipeline: `source "clicks" (type: kafka)`."""

from __future__ import annotations

from penstock.spec.source_map import Route, SourceMap

KINDS = {
    "sources": "source",
    "transforms": "transform",
    "sinks": "sink",
    "connections": "connection",
    "side_outputs": "side output",
}


def describe_location(source_map: SourceMap, route: Route) -> tuple[str, str]:
    """Returns the part of a pipeline at `route`, and the remaining route as `watermark.column`."""
    head = route[0] if route else None
    if head in KINDS and len(route) > 1:
        return _describe_node(source_map, str(head), str(route[1])), dotted(route[2:])
    if head == "functions" and len(route) > 1:
        return f'function "{route[1]}"', dotted(route[2:])
    if head == "tests" and len(route) > 1:
        return _describe_test(source_map, route[1]), dotted(route[2:])
    if head in {"runtime", "dead_letter"}:
        return str(head), dotted(route[1:])
    return "", dotted(route)


def dotted(route: Route) -> str:
    """Returns a route as `a.b[0]`."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in route)
    return "".join(parts).lstrip(".")


def _describe_node(source_map: SourceMap, section: str, name: str) -> str:
    kind = _text(source_map, (section, name, "type"))
    return f'{KINDS[section]} "{name}"' + (f" (type: {kind})" if kind else "")


def _describe_test(source_map: SourceMap, index: str | int) -> str:
    name = _text(source_map, ("tests", index, "name"))
    if name:
        return f'test "{name}"'
    return f"test {index + 1}" if isinstance(index, int) else f'test "{index}"'


def _text(source_map: SourceMap, route: Route) -> str | None:
    value = source_map.find(route)
    return value.written if value is not None and isinstance(value.data, str) else None
