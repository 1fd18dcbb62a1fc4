"""From a pipeline to the statements of a SQL script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.errors import PenstockError, SpecError, raise_all
from penstock.core.text import plural
from penstock.spec.documents.connections import apply_connections
from penstock.spec.documents.include import IncludeReader
from penstock.spec.documents.overlay import merge_files
from penstock.spec.front_end import companion_test_file
from penstock.spec.script.writer.comparison import SECTIONS, differences, query_text
from penstock.spec.script.writer.functions import function_statement
from penstock.spec.script.writer.tables import dynamic_table, sink_statements, source_table
from penstock.spec.script.writer.values import (
    CODE,
    Statement,
    assignments,
    identifier,
    keep_in_yaml_hint,
    literal,
    text_literal,
    unsupported_error,
)
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode

_TEXTS = ("name", "description", "function_files", "plugins")
_HINTS = {
    "filter": "write type: sql with SELECT * FROM input WHERE condition",
    "select": "write type: sql with SELECT expression AS column FROM input",
    "map": "write type: sql with SELECT *, expression AS column FROM input",
    "rename": "write type: sql with SELECT column AS name FROM input",
    "drop": "write type: sql with SELECT and the other columns",
    "python": "write a function under functions, and call it in a transform of type sql",
}
_OTHER = "write a transform of type sql, or keep it in a YAML file beside the script"


@dataclass(frozen=True)
class Script:
    """A SQL script. `warnings` are parts of the files that have no effect on a run."""

    text: str
    warnings: Sequence[PenstockError] = ()


def to_script(paths: Sequence[str]) -> Script:
    """Returns files and their includes as the SQL script of one pipeline.

    The script has the same nodes and settings, with the options of connections in the tables that
    use them. Variables and secrets remain expressions. Comments are not kept. Raises SpecError or
    ValidationErrors with all parts that a script cannot state.
    """
    reader = IncludeReader({})
    files = reader.read(paths)
    raise_all(reader.errors)
    document, errors = merge_files(files)
    raise_all(errors)
    document, errors = apply_connections(document)
    writer = _Writer(document)
    statements = list(writer.statements())
    errors += writer.errors
    if not errors:
        errors += differences(document, statements)
    raise_all(errors)
    return Script("\n\n".join(each.text for each in statements) + "\n", writer.warnings)


class _Writer:
    """A writer of the statements of a document. Errors are in `errors`."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.errors: list[PenstockError] = []
        self.warnings: list[PenstockError] = []
        self._nodes = [*document.names("sources"), *document.names("transforms")]

    def statements(self) -> Iterator[Statement]:
        """Yields settings, functions, tables and views."""
        root = self._document.root
        for entry in root.entries:
            if entry.name not in (*_TEXTS, *SECTIONS, "runtime", "connections"):
                self._add_other(entry)
        settings = list(self._settings(root))
        if settings:
            text = "\n".join(statement.text for statement in settings)
            yield Statement(text, settings[0].origin)
        for section in SECTIONS:
            for entry in _entries(root.get(section)):
                yield from self._node(section, entry)

    def _add_other(self, entry: Entry) -> None:
        """Adds the error or the warning of a section that a script does not have."""
        where = entry.key.location
        if entry.name != "tests":
            message = f'a SQL script has no statement for "{entry.name}"'
            self.errors.append(unsupported_error(message, where, keep_in_yaml_hint(entry.name)))
        elif isinstance(entry.value, SequenceNode) and entry.value.items:
            count = plural(len(entry.value.items), "test case")
            path = companion_test_file(Path(self._document.files[0]).with_suffix(".sql").name)
            hint = f"move the section tests to {path}, beside the script {path.stem[:-5]}.sql"
            self.warnings.append(
                SpecError(f"the script has no {count}", code=CODE, where=where, hint=hint)
            )

    def _settings(self, root: MappingNode) -> Iterator[Statement]:
        for name in _TEXTS:
            entry = root.entry(name)
            if entry is not None and not _is_empty(entry.value):
                yield from self._set(name, entry, entry.value)
        for entry in _entries(root.get("runtime")):
            if entry.name != "spark":
                yield from self._runtime(entry)
                continue
            for setting in _entries(entry.value):
                if setting.name.startswith("spark."):
                    yield from self._set(text_literal(setting.name), setting, setting.value)
                else:
                    message = f'SET has no setting of Spark named "{setting.name}"'
                    hint = "write a name that starts with spark."
                    self.errors.append(unsupported_error(message, setting.key.location, hint))

    def _runtime(self, entry: Entry) -> Iterator[Statement]:
        try:
            for name, value in assignments([entry.name], entry.value):
                yield Statement(f"SET {name} = {value};", entry.key.location)
        except SpecError as error:
            self.errors.append(error)

    def _set(self, name: str, entry: Entry, value: Node) -> Iterator[Statement]:
        try:
            yield Statement(f"SET {name} = {literal(value)};", entry.key.location)
        except SpecError as error:
            self.errors.append(error)

    def _node(self, section: str, entry: Entry) -> Iterator[Statement]:
        """Yields the statements of a node or a function; adds its errors."""
        node = entry.value
        if not isinstance(node, MappingNode):
            message = f'expected a map of options of "{entry.name}"'
            self.errors.append(
                unsupported_error(message, entry.key.location, "run `penstock check`")
            )
            return
        try:
            if section == "functions":
                yield function_statement(entry, node)
            elif section == "sources":
                yield source_table(entry, node)
            elif section == "transforms":
                yield from self._transform(entry, node)
            else:
                yield from list(sink_statements(entry, node, self._nodes))
        except SpecError as error:
            self.errors.append(error)

    def _transform(self, transform: Entry, node: MappingNode) -> Iterator[Statement]:
        """Yields a view or a dynamic table.

        Adds an error for another type, or for each option of a view but the query.
        """
        type_, sql = node.get("type"), node.get("sql")
        kind = type_.value if isinstance(type_, ScalarNode) else None
        if kind == "dynamic_table":
            yield dynamic_table(transform, node)
            return
        if kind != "sql" or not isinstance(sql, ScalarNode):
            message = f'a SQL script has no statement for "{transform.name}" of type {kind}'
            where = type_.location if type_ is not None else transform.key.location
            self.errors.append(unsupported_error(message, where, _HINTS.get(str(kind), _OTHER)))
            return
        for entry in node.entries:
            if entry.name not in ("type", "sql"):
                message = f'CREATE VIEW has no option "{entry.name}"'
                hint = keep_in_yaml_hint(f'"{transform.name}"')
                self.errors.append(unsupported_error(message, entry.key.location, hint))
        query = query_text(str(sql.value))
        text = f"CREATE VIEW {identifier(transform.name)} AS\n{query};"
        yield Statement(text, self._document.key(("transforms", transform.name, "sql")))


def _entries(section: Node | None) -> tuple[Entry, ...]:
    return section.entries if isinstance(section, MappingNode) else ()


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value is None
