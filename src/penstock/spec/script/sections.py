"""The sections of a pipeline, to which the statements of a script add nodes."""

from __future__ import annotations

from collections import Counter

from penstock.core.errors import SpecError
from penstock.core.names import derived_name
from penstock.spec.script.assignment import unique_names
from penstock.spec.script.dialect import Dialect
from penstock.spec.script.function import CreateFunction
from penstock.spec.script.hidden_times import HiddenTimes
from penstock.spec.script.lift import lift_windows
from penstock.spec.script.row_times import window_columns
from penstock.spec.script.tokens import Text
from penstock.spec.script.tree_nodes import derived_node, key, map_node, query_node
from penstock.spec.tree.nodes import File, Node
from penstock.sql.text.edits import Translation


class Sections:
    """Nodes by section and name. Two nodes have different names."""

    def __init__(self, file: File, times: HiddenTimes, dialect: Dialect) -> None:
        self._file, self._times, self._dialect = file, times, dialect
        self._count: Counter[str] = Counter()
        self._names_seen: dict[str, Text] = {}
        self._functions_seen: dict[str, Text] = {}
        self.functions: dict[Text, Node] = {}
        self.nodes: dict[str, dict[Text, Node]] = {
            section: {} for section in ("sources", "transforms", "sinks")
        }

    def add_node(self, section: str, name: Text, node: Node) -> None:
        """Adds a node. Raises SpecError if its name is taken."""
        self._check_duplicate(name, self._names_seen, "name")
        self.nodes[section][name] = node

    def add_function(self, function: CreateFunction) -> None:
        """Adds a function. Raises SpecError if its name is taken."""
        self._check_duplicate(function.name, self._functions_seen, "function")
        if function.expression is not None:
            function.add("sql", self.query_node(function.expression))
        self.functions[function.name] = function.node(self._file)

    def _check_duplicate(self, name: Text, seen: dict[str, Text], kind: str) -> None:
        first = seen.setdefault(name.value.lower(), name)
        if first is not name:
            raise SpecError(
                f'duplicate {kind} "{name.value}"',
                code="duplicate-name",
                where=self._file.location(name.start, name.end),
                hint=f"rename one of them; the first is at "
                f"{self._file.location(first.start, first.end)}",
            )

    def add_transform(
        self,
        name: Text,
        query: Text,
        sql: str | None = None,
        *,
        by_position: bool = False,
        is_written: bool = False,
        is_timed: bool = False,
    ) -> None:
        """Adds a query. `sql` replaces the text of the script.

        Columns of a query that are read by position may have the same name. `is_written` is whether
        a sink writes the rows, and `is_timed` whether their event time follows from a window.
        """
        if sql is not None:
            self.add_query(name, derived_node(self._file, sql, query), name)
            return
        edited = Translation.of(query.value)
        if is_timed:
            edited = edited.edit(window_columns(edited.text))
        edited, parts = lift_windows(edited, name.value)
        for part in parts:
            place = Text(part.name, query.start + part.start, query.start + part.end)
            self.add_query(place, self._query_node(query, part.query, place), place)
        text = self._query_node(
            query, edited, query, is_written=is_written,
            hides_time=(is_written or by_position) and not is_timed, by_position=by_position,
        )  # fmt: skip
        self.add_query(name, text, name)

    def query_node(self, query: Text) -> Node:
        """Returns the text of a query or an expression, in its meaning in the dialect."""
        return self._query_node(query, Translation.of(query.value), query)

    def _query_node(
        self,
        query: Text,
        edited: Translation,
        place: Text,
        *,
        is_written: bool = False,
        hides_time: bool = False,
        by_position: bool = False,
    ) -> Node:
        """Returns the text of a query that edits made from a query of the script, at its place."""
        edited = self._dialect.translate_query(edited, is_written=is_written)
        if hides_time:
            edited = edited.edit(self._times.without_time(edited.text))
        if by_position:
            edited = edited.edit(unique_names(edited.text))
        return query_node(self._file, query, edited, place)

    def add_query(self, name: Text, text: Node, origin: Text) -> None:
        """Adds a transform of type `sql`."""
        type_ = derived_node(self._file, "sql", origin)
        entries: dict[Text, Node] = {key("type"): type_, key("sql"): text}
        self.add_node("transforms", name, map_node(self._file, entries))

    def helper(self, name: Text, suffix: str) -> Text:
        """Returns the name of a node that the script does not name."""
        base = f"{name.value}_{suffix}"
        self._count[base] += 1
        count = self._count[base]
        number = "" if count == 1 else f"_{count}"
        return name._replace(value=derived_name(name.value, f"_{suffix}{number}"))
