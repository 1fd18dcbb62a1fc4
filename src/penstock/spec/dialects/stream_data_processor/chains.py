"""The handlers of nodes in a row, from their producers to a consumer, as one transform.

A node passes batches to the next one. Rows of a pipeline have no batches between transforms, so a
transform has the handlers of all nodes above a consumer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.dialects.options.trees import Tree, to_node
from penstock.spec.dialects.stream_data_processor.producers import ProducerPlan
from penstock.spec.tree.nodes import Node, ScalarNode, SequenceNode

Handler = tuple[Node, Mapping[str, Tree]]
"""The place and the options of a handler."""


@dataclass(frozen=True)
class NodePlan:
    """A node: its key, its options, its inputs and its handlers."""

    key: Node
    reading: Reading
    inputs: list[str]
    handlers: Sequence[Handler]


@dataclass(frozen=True)
class _Path:
    """The producers above a node, and the handlers from them to the node."""

    producers: list[str]
    handlers: list[Handler]


class Chains:
    """The transforms of a graph without errors, made for the nodes that consumers read.

    `read` are the nodes that reach a consumer.
    """

    def __init__(
        self, producers: Mapping[str, ProducerPlan], nodes: Mapping[str, NodePlan],
        findings: Findings,
    ) -> None:  # fmt: skip
        self._producers, self._nodes, self._findings = producers, nodes, findings
        self.read: set[str] = set()

    def output(self, name: str, transforms: dict[str, Tree]) -> str:
        """Returns the source or the transform with the rows of a node, which is added."""
        path = self._path(name)
        plans = [self._producers[each] for each in path.producers]
        if not path.handlers and all(plan.parser.merged is None for plan in plans):
            return name
        made = name if name in self._nodes else f"{name}_rows"
        if made not in transforms:
            reading = self._nodes[name].reading if name in self._nodes else plans[0].reading
            transforms[made] = to_node(self._transform(path, plans), reading.node)
        return made

    def _path(self, name: str) -> _Path:
        if name in self._producers:
            return _Path([name], [])
        node = self._nodes[name]
        self.read.add(name)
        above = [self._path(each) for each in node.inputs]
        shared = above[0].handlers
        if any(path.handlers != shared for path in above[1:]):
            self._findings.error(
                "several inputs have different handlers", node.reading.where("from"),
                code="unsupported-option",
                hint="read the producers, and write the handlers in this node",
            )  # fmt: skip
        producers = dict.fromkeys(each for path in above for each in path.producers)
        return _Path([*producers], [*shared, *node.handlers])

    def _transform(self, path: _Path, plans: Sequence[ProducerPlan]) -> dict[str, Tree]:
        parsers = [plan.parser for plan in plans]
        time = next((each.time for each in parsers if each.time is not None), None)
        self._check_times(plans, time)
        merged = dict.fromkeys(name for each in parsers for name in each.merged or ())
        by, handlers = _leading_group(path.handlers, {*merged} if merged else None)
        chain: list[Tree] = [to_node(options, at) for at, options in handlers]
        if merged:
            chain.insert(0, {"type": "join", "on": [*merged]})
        batch: list[str] = next((plan.batch for plan in plans if plan.batch), [])
        if not batch and time is not None and (merged or _needs_batches(handlers)):
            batch = [time]
        measurements = [each.measurement for each in parsers if each.measurement is not None]
        tags = dict.fromkeys(tag for each in parsers for tag in each.tags)
        return {
            "type": "handlers", "from": path.producers, "by": by, "time": time,
            "measurement": measurements[0] if measurements else None,
            "tags": [*tags] or None, "batch": batch or None, "handlers": chain,
        }  # fmt: skip

    def _check_times(self, plans: Sequence[ProducerPlan], time: str | None) -> None:
        for plan in plans:
            if plan.parser.time != time:
                self._findings.error(
                    f'the time of a producer is "{plan.parser.time}", and that of another one is '
                    f'"{time}"',
                    plan.reading.where("parser"), code="unsupported-option",
                    hint="set time_column_name to the same column in both",
                )  # fmt: skip


def _leading_group(
    handlers: Sequence[Handler], known: set[str] | None
) -> tuple[Tree, Sequence[Handler]]:
    """Returns the columns of the first group, and the other handlers.

    The transform is parallel by these columns. Handlers before the group must be filters, and the
    columns `known` if rows are merged.
    """
    for index, (_, options) in enumerate(handlers):
        columns = options.get("by")
        if options["type"] == "group" and isinstance(columns, SequenceNode):
            names = {item.written for item in columns.items if isinstance(item, ScalarNode)}
            if known is None or names <= known:
                return columns, [*handlers[:index], *handlers[index + 1 :]]
        if options["type"] != "filter":
            break
    return None, handlers


def _needs_batches(handlers: Sequence[Handler]) -> bool:
    """Returns whether a handler of batches is not below a window."""
    for _, options in handlers:
        no_wait = options.get("no_wait")
        waits = not (isinstance(no_wait, ScalarNode) and no_wait.value is True)
        if options["type"] in ("sort", "aggregate", "join") or not waits:
            return True
        if options["type"] in ("window", "dynamic_window"):
            return False
    return False
