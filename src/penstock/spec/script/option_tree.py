"""Nested maps from dotted names, and the options of a table as options of a node."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean, nearest
from penstock.spec.script.options import Option
from penstock.spec.script.tokens import Text
from penstock.spec.script.tree_nodes import map_node
from penstock.spec.tree.nodes import File, Node, ScalarNode

_TYPE = "type"
_CONNECTOR = "connector"


class Tree:
    """A map of names to values and to further maps."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._keys: dict[str, Text] = {}
        self._values: dict[str, Node | Tree] = {}

    def add(self, path: Sequence[Text], value: Node) -> None:
        """Adds or replaces a value. A value above becomes the `type` of its map."""
        key, *below = path
        self._keys.setdefault(key.value, key)
        if not below:
            known = self._values.get(key.value)
            if isinstance(known, Tree):
                known.add([key._replace(value=_TYPE)], value)
            else:
                self._values[key.value] = value
            return
        tree = self._values.get(key.value)
        if not isinstance(tree, Tree):
            parent, tree = tree, Tree(self._file)
            if parent is not None:
                tree.add([key._replace(value=_TYPE)], parent)
            self._values[key.value] = tree
        tree.add(below, value)

    def take(self, name: str) -> tuple[Text, Node] | None:
        """Removes a value. Returns its key and the value; None if it is absent or a map."""
        value = self._values.get(name)
        if value is None or isinstance(value, Tree):
            return None
        return self._keys.pop(name), self._values.pop(name)  # type: ignore[return-value]

    def names(self) -> list[str]:
        """Returns the names."""
        return list(self._values)

    def entries(self) -> dict[Text, Node]:
        """Returns the entries by key."""
        return {
            self._keys[name]: value.node() if isinstance(value, Tree) else value
            for name, value in self._values.items()
        }

    def node(self) -> Node:
        """Returns the map as a node."""
        return map_node(self._file, self.entries())


class OptionTree:
    """The options of a table. `connector` is the type, options of the format follow its name."""

    def __init__(self, file: File, options: Sequence[Option]) -> None:
        self._file, self._tree = file, Tree(file)
        self._kind: Option | None = None
        self._connector: Option | None = None
        format_ = next((option for option in options if option.name == "format"), None)
        for option in options:
            if option.name == _CONNECTOR:
                self._connector = option
            elif option.name == _TYPE:
                self._kind = option
            elif format_ and len(option.path) > 1 and option.path[0].value == _text(format_):
                path = [option.path[0]._replace(value="format"), *option.path[1:]]
                self._tree.add(path, option.value)
            else:
                self._tree.add(option.path, option.value)

    def add(self, name: str, value: Node, origin: Text) -> None:
        """Adds an option of the node, which a clause of the statement defines."""
        self._tree.add([origin._replace(value=name)], value)

    def take(self, name: str) -> tuple[Text, Node] | None:
        """Removes an option. Returns its key and its value, or None."""
        return self._tree.take(name)

    def has(self, name: str) -> bool:
        """Returns whether the node has an option."""
        return name in self._tree.names()

    @property
    def connector(self) -> str:
        """The connector; empty if the table does not name it."""
        return _text(self._connector) if self._connector else ""

    def check_kind(self, table: Text, kind: str, kinds: Collection[str], use: Text) -> None:
        """Checks `connector` and `type`. `use` is the place of an INSERT. Raises SpecError."""
        where = self._file.location(table.start, table.end)
        if self._connector is None:
            similar = nearest(_CONNECTOR, self._tree.names())
            raise SpecError(
                f'expected the option connector of the table "{table.value}"'
                + (f', found "{similar}"' if similar else ""),
                code="missing-connector",
                where=where,
                hint=self._connector_hint(kinds),
            )
        declared = _text(self._kind) if self._kind else kind
        if self._kind is not None and declared not in kinds:
            raise SpecError(
                f'expected a value of "{_TYPE}", found "{declared}"',
                code="invalid-option",
                where=self._kind.value.location,
                hint=did_you_mean(declared, kinds),
            )
        if declared == "sink" and kind != "sink":
            raise SpecError(
                f'no INSERT writes the table "{table.value}", which is a sink',
                code="unwritten-table",
                where=where,
                hint=f"add INSERT INTO {table.value} SELECT ...",
            )
        if declared != "sink" and kind == "sink":
            raise SpecError(
                f'the table "{table.value}" is a {declared} and cannot be written',
                code="read-only-table",
                where=self._file.location(use.start, use.end),
                hint="create another table for writing",
            )

    def _connector_hint(self, kinds: Collection[str]) -> str:
        """Returns a hint for a table without a connector, which may be named by `type`."""
        declared = _text(self._kind) if self._kind else ""
        if declared and declared not in kinds:
            return f"write connector = '{declared}' in place of {_TYPE}"
        return "add connector = 'files' or another connector; `penstock list` shows them"

    def node(self) -> Node:
        """Returns the node, with its type."""
        assert self._connector is not None
        key = self._connector.path[0]._replace(value=_TYPE)
        return map_node(self._file, {key: self._connector.value, **self._tree.entries()})


def _text(option: Option) -> str:
    return str(option.value.value) if isinstance(option.value, ScalarNode) else ""
