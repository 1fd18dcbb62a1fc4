"""Dead letters that a plan can replay, and the reasons against the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from penstock.plan.model import Plan
from penstock.plan.unnamed_nodes import UnnamedNodes
from penstock.runtime.dead_letters.dead_letter import DeadLetter
from penstock.runtime.dead_letters.replay_record import SkippedNode
from penstock.runtime.dead_letters.replay_rows import downstream, late_query

_MOVED = (
    "several statements of the script were changed, so the statement of this node is unknown; "
    "replay before you add statements that write the same table, or remove them for the replay"
)

_NO_PAYLOAD = (
    "the dead letters have no payload that can be decoded again; read the records again with "
    "penstock run FILE --fresh, which repeats all rows of the sources, or remove the dead letters "
    "with penstock dead remove"
)


def select_replayable(
    plan: Plan, dead_letters: Sequence[DeadLetter], force: bool
) -> tuple[list[DeadLetter], list[SkippedNode]]:
    """Returns the letters that a plan can replay, with the present names of their nodes.

    The second list has the numbers of the others. With `force`, stateful nodes are no reason.
    """
    skipped: list[SkippedNode] = []
    by_entry: dict[tuple[str, str, str | None], list[DeadLetter]] = {}
    for letter in with_payload(_find_nodes(plan, dead_letters, skipped), skipped):
        entry = letter.node, letter.stage, late_query(letter)
        by_entry.setdefault(entry, []).append(letter)
    replayable = []
    for (name, stage, query), entering in by_entry.items():
        reason = _obstacle(plan, name, stage, query, force)
        if reason is None:
            replayable += entering
        else:
            skipped.append(SkippedNode(name, len(entering), reason))
    return replayable, skipped


def with_payload(
    dead_letters: Iterable[DeadLetter], skipped: list[SkippedNode]
) -> Iterator[DeadLetter]:
    """Yields the letters that have a payload for their stage. Adds the others to `skipped`.

    A decoded row that a source has rejected is in its letter as JSON, which has no origin and may
    lack the columns that no query uses.
    """
    lost = Counter[str]()
    for letter in dead_letters:
        if letter.payload is None or (letter.stage == "decode" and letter.origin is None):
            lost[letter.node] += 1
        else:
            yield letter
    skipped += [SkippedNode(name, count, _NO_PAYLOAD) for name, count in lost.items()]


def _find_nodes(
    plan: Plan, dead_letters: Sequence[DeadLetter], skipped: list[SkippedNode]
) -> Iterator[DeadLetter]:
    """Yields letters with the present names of their nodes. Adds the others to `skipped`."""
    unnamed, lost = UnnamedNodes(plan), Counter[str]()
    entries = {(letter.node, letter.definition) for letter in dead_letters}
    nodes = {entry: unnamed.find(*entry) for entry in entries}
    definitions = {node: unnamed.definition(node) for node in nodes.values() if node}
    for letter in dead_letters:
        node = nodes[letter.node, letter.definition]
        if node is None:
            lost[letter.node] += 1
        else:
            yield replace(letter, node=node, definition=definitions[node])
    skipped += [SkippedNode(name, count, _MOVED) for name, count in lost.items()]


def _obstacle(
    plan: Plan, name: str, stage: str, name_of_query: str | None, force: bool
) -> str | None:
    """Returns the reason against a replay of a node's dead letters, or None.

    `name_of_query` is the query in which they are late rows, if they are.
    """
    node = plan.nodes.get(name)
    if stage == "output" and name_of_query is None:
        return "the node computed these rows; correct the node and read its input again"
    streams = [name for name in node.inputs if name in plan.streams] if node else []
    if stage == "transform" and name_of_query is None and len(streams) > 1:
        return "the node combines several streams; correct the node and read its input again"
    kinds = {"decode": ("source",), "transform": ("transform",), "sink": ("sink",)}
    if node is None or node.kind not in kinds.get(stage, ("source", "transform")):
        return "the pipeline no longer has this node"
    reached = {*downstream(plan, name)}
    if name_of_query is not None:
        query = next((each for each in plan.queries if each.name == name_of_query), None)
        if query is None or name not in query.stream_nodes:
            return f"the pipeline no longer has the query {name_of_query}"
        reached &= {*query.stream_nodes, *query.batch_nodes}
    others = [other for other in plan.nodes.values() if other.name in reached]
    stateful = [other.name for other in (node, *others) if other.stateful]
    if stateful and not force:
        return (
            f"{', '.join(stateful)} between this node and its sinks has state that a replay "
            "cannot use; with --force only the replayed rows are computed"
        )
    return None
