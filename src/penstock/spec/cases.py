"""Names of nodes in the test cases of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.text import did_you_mean
from penstock.spec.graph import is_dynamic_table, list_nodes
from penstock.spec.location_text import describe_location
from penstock.spec.parsed import MissingParts
from penstock.spec.source_map import Route, SourceMap, find_map, find_texts


def check_cases(source_map: SourceMap, missing: MissingParts | None = None) -> Iterator[SpecError]:
    """Yields an error for each unknown name in `given`, `expect` and `dead_letters`.

    Names that may be in `missing` parts are no errors.
    """
    nodes = list_nodes(source_map)
    kinds = {node.key: node.kind for node in nodes}
    kinds |= {name: "transform" for node in nodes if node.outputs for name in node.readable}
    readable = {name for name, kind in kinds.items() if kind == "source"}
    readable |= {node.key for node in nodes if is_dynamic_table(node)}
    tests = source_map.find(("tests",))
    for index in range(len(tests.data) if tests is not None and tests.is_list else 0):
        test: Route = ("tests", index)
        for name in find_map(source_map, (*test, "given")):
            if name not in readable and not (missing and missing.may_have(name)):
                yield _not_a_source(source_map, (*test, "given", name), kinds)
        for name in find_map(source_map, (*test, "expect")):
            if name not in kinds and not (missing and missing.may_have(name)):
                where = source_map.key((*test, "expect", name))
                yield _unknown_node(source_map, test, name, where, kinds)
        yield from _check_dead_letters(source_map, test, kinds, missing)


def _check_dead_letters(
    source_map: SourceMap, test: Route, kinds: dict[str, str], missing: MissingParts | None
) -> Iterator[SpecError]:
    dead_letters = source_map.find((*test, "dead_letters"))
    for index in range(
        len(dead_letters.data) if dead_letters is not None and dead_letters.is_list else 0
    ):
        for route, value in find_texts(source_map, (*test, "dead_letters", index, "node")):
            if value.data not in kinds and not (missing and missing.may_have(value.data)):
                where = source_map.value(route)
                yield _unknown_node(source_map, test, value.written, where, kinds)


def _not_a_source(source_map: SourceMap, route: Route, kinds: dict[str, str]) -> SpecError:
    subject, _ = describe_location(source_map, route[:2])
    name = str(route[-1])
    kind = kinds.get(name)
    return SpecError(
        f'{subject} gives rows to "{name}", which is a {kind}; expected a source'
        if kind
        else f'{subject} gives rows to "{name}", which is not a source',
        code="unknown-node",
        where=source_map.key(route),
        hint=did_you_mean(name, [name for name, kind in kinds.items() if kind == "source"]),
    )


def _unknown_node(
    source_map: SourceMap, test: Route, name: str, where: Location, kinds: dict[str, str]
) -> SpecError:
    subject, _ = describe_location(source_map, test)
    return SpecError(
        f'{subject} refers to "{name}", which is not a node',
        code="unknown-node",
        where=where,
        hint=did_you_mean(name, kinds),
    )
