"""The nodes of a pipeline that a file becomes, and facts about the nodes of the file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.dialects.options.trees import Tree, to_node
from penstock.spec.dialects.streamling.queries import OPERATION, Reference
from penstock.spec.dialects.streamling.settings import Settings
from penstock.spec.dialects.streamling.types import is_wide
from penstock.spec.dialects.streamling.wide_operators import kinds_of_columns
from penstock.spec.tree.nodes import Entry, MappingNode, Node, ScalarNode

_LONGEST = 50
"""The characters of a name to which suffixes are added."""
SECTIONS = ("sources", "transforms", "sinks")


_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "start": ("starting_offsets", "start_at"), "format": ("data_format",),
    "table": ("table_name", "landing_table"), "aggregate_table": ("agg_table",),
    "aggregates": ("aggregate",), "query": ("filter", "columns", "start_at"),
    "key_columns": ("primary_key",), "order_columns": ("primary_key",),
    "metadata": ("include_metadata",), "watch": ("mode",), "framing": ("one_row_per_request",),
    "create": ("topic_partitions",), "engine": ("version_column_name",), "sql": ("filter",),
    "column_types": ("schema_override", "schema_overrides"), "labels": ("telemetry",),
    "batch": ("batch_flush_interval", "batch_size"), "cache": ("cache_refresh_debounce_ms",),
    "start_offsets": ("offset_table",), "deletes": ("append_only_mode",),
    "storage": ("backend_entity_name",), "reject": ("skip_on_error",), "every": ("sample_every",),
}  # fmt: skip
"""The options of the file that an option is made of, if they have other names."""


@dataclass(frozen=True)
class Fact:
    """A node of the file: its kind, its name, its map, and the nodes that it reads."""

    kind: str
    name: str
    key: ScalarNode
    node: MappingNode
    references: tuple[Reference, ...] | None = ()
    """What the node reads; None if it is not known."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the nodes that the node reads, in lower case, as far as they are known."""
        return tuple(reference.name for reference in self.references or ())

    @property
    def type(self) -> str:
        """The type as written."""
        node = self.node.get("type")
        return node.written.strip() if isinstance(node, ScalarNode) else ""

    @property
    def subject(self) -> str:
        """The node in messages."""
        return f'{self.kind} "{self.name}"'


@dataclass
class Pipeline:
    """A file on its way to a pipeline. `names` has the names of nodes by those in the file."""

    settings: Settings
    findings: Findings
    facts: Mapping[str, Fact]
    """The sources and transforms by their names in lower case."""
    names: Mapping[str, str]
    sections: dict[str, dict[str, Entry]] = field(
        default_factory=lambda: {section: {} for section in SECTIONS}
    )

    def add(
        self, section: str, name: str, tree: Mapping[str, Tree], reading: Reading, key: ScalarNode
    ) -> None:
        """Adds a node at the place of a node of the file, and options at those of its options."""
        placed = {option: _placed(option, value, reading) for option, value in tree.items()}
        node = to_node(placed, reading.node, key.location)
        self.sections[section][name] = Entry(_renamed(key, name), node)

    def remove_since(self, known: Mapping[str, Collection[str]]) -> None:
        """Removes the nodes that are not among known names, by section."""
        for section, nodes in self.sections.items():
            for name in [name for name in nodes if name not in known[section]]:
                del nodes[name]

    def input_of(self, reading: Reading) -> str:
        """Returns the node that `from` names, as the text of the file if there is none."""
        name = reading.text("from")
        return self.names.get(name.lower(), name)

    def wide_columns(self, fact: Fact, seen: Collection[str] = ()) -> dict[str, str]:
        """Returns the columns with integers of 256 bits that a node reads, by their kinds."""
        found: dict[str, str] = {}
        for name in fact.inputs:
            source = self.facts.get(name)
            if source is None or name in seen:
                continue
            columns = self.wide_columns(source, (*seen, name))
            text = source.node.get("sql")
            if source.type == "sql" and isinstance(text, ScalarNode):
                columns = kinds_of_columns(text.written, columns)
            found |= columns | _declared_wide(source.node)
        return found

    def primary_key(self, name: str) -> list[str]:
        """Returns the key of a node of the file: its own, or that of its input; empty without."""
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            fact = self.facts.get(name)
            if fact is None:
                return []
            own = columns_of(fact.node.get("primary_key"))
            if own:
                return own
            name = fact.inputs[0] if fact.inputs else ""
        return []


def _declared_wide(node: MappingNode) -> dict[str, str]:
    """Returns the columns of a schema with integers of 256 bits, by their kinds."""
    schemas = (node.get(name) for name in ("schema", "schema_override"))
    return {
        entry.name.lower(): "i"
        for schema in schemas
        if isinstance(schema, MappingNode)
        for entry in schema.entries
        if isinstance(entry.value, ScalarNode) and is_wide(entry.value.written)
    }


def columns_of(node: Node | None) -> list[str]:
    """Returns the columns of a text with commas."""
    text = node.written if isinstance(node, ScalarNode) and node.value is not None else ""
    return [column.strip() for column in text.split(",") if column.strip()]


def node_names(written: Sequence[str]) -> dict[str, str]:
    """Returns valid names of nodes by the names of a file in lower case."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for text in written:
        name = re.sub(r"\W", "_", text, flags=re.ASCII).strip("_")
        name = name if name[:1].isalpha() else f"node_{name}"
        name = name[:_LONGEST]
        while name.lower() in taken:
            name = f"{name}_"
        taken.add(name.lower())
        names[text.lower()] = name
    return names


def with_operations(name: str, default: str = "i") -> dict[str, Tree]:
    """Returns the transform that adds the kind of change to rows that lack it."""
    return {"type": "default", "from": name, "columns": {OPERATION: default}}


def _placed(option: str, value: Tree, reading: Reading) -> Tree:
    """Returns the value of an option at the place of the option of the file that it is made of."""
    for name in (option, *_OPTIONS.get(option, ())):
        entry = reading.node.entry(name)
        if entry is not None and value is not None:
            return to_node(value, entry.value, entry.value.location)
    return value


def _renamed(key: ScalarNode, name: str) -> ScalarNode:
    return ScalarNode(name, name, name, key.location, key.base)
