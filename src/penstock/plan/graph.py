"""Order among nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def ordered(inputs: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """The names, each after its inputs; and the names of one cycle, if there is one.

    The order is that of `inputs` wherever the edges allow it.
    """
    order: list[str] = []
    done: set[str] = set()
    for name in inputs:
        cycle = _visit(name, inputs, done, order, [])
        if cycle:
            return order, cycle
    return order, []


def _visit(
    name: str,
    inputs: Mapping[str, Sequence[str]],
    done: set[str],
    order: list[str],
    path: list[str],
) -> list[str]:
    if name in done:
        return []
    if name in path:
        return [*path[path.index(name) :], name]
    for above in inputs.get(name, ()):
        if above in inputs:
            cycle = _visit(above, inputs, done, order, [*path, name])
            if cycle:
                return cycle
    done.add(name)
    order.append(name)
    return []
