"""Proposals in SQL scripts: statements, options of tables, types, and queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.language.document import Document
from penstock.language.functions import FunctionHelp
from penstock.language.model import Completion, Completions
from penstock.language.option_completion import (
    option_detail,
    option_text,
    type_completions,
    value_completions,
)
from penstock.language.options import KnownOption, options_at
from penstock.language.relations import Relations
from penstock.language.script import ScriptOption, ScriptStatement
from penstock.language.sql_completion import (
    KEYWORDS,
    column_completion,
    complete_sql,
    matching,
    node_completion,
)
from penstock.language.yaml_entry import Entry
from penstock.sdk.registry import Kind

_WORD = re.compile(r"[\w.]*\Z")
_TYPES = (
    "BIGINT", "BINARY", "BOOLEAN", "DATE", "DECIMAL(10, 2)", "DOUBLE", "FLOAT", "INT", "SMALLINT",
    "STRING", "TIMESTAMP", "ARRAY<STRING>", "MAP<STRING, STRING>", "STRUCT<name: STRING>",
    "PRIMARY KEY", "NOT NULL", "WATERMARK FOR",
)  # fmt: skip
_STATEMENTS = {
    "CREATE TABLE": "CREATE TABLE ${1:name} (${2:id BIGINT}) WITH (\n"
    "  connector = '${3:files}',\n  $0\n);",
    "CREATE VIEW": "CREATE VIEW ${1:name} AS\nSELECT ${2:*} FROM ${3:source};",
    "INSERT INTO": "INSERT INTO ${1:table}\nSELECT ${2:*} FROM ${3:source};",
    "CREATE FUNCTION": "CREATE FUNCTION ${1:name}(${2:x DOUBLE}) RETURNS ${3:DOUBLE}\n"
    "RETURN ${0:x};",
    "SET": "SET ${1:name} = '${2:value}';",
}
_OF_CLAUSES = frozenset({"type", "from", "schema", "primary_key", "watermark", "operation_column"})
"""The options of nodes that a statement has as clauses."""


@dataclass(frozen=True)
class ScriptCompleter:
    """Proposals at places of one script."""

    document: Document
    statements: Sequence[ScriptStatement]
    relations: Relations
    functions: Sequence[FunctionHelp] = ()

    def complete(self, index: int) -> Completions | None:
        """Returns the proposals at an index; None where nothing is proposed."""
        text = self.document.text
        statement = next(each for each in self.statements if index <= each.end)
        if statement.query and statement.query[0] <= index and statement.kind != "query":
            return self._query(*statement.query, index)
        if _within(statement.options, index):
            return self._option(statement, index)
        if _within(statement.columns, index) and statement.columns:
            return self._in_columns(statement, index)
        if statement.kind in ("function", "set"):
            return None
        found = _WORD.search(text, statement.start, index)
        start = found.start() if found else index
        if not text[statement.start : start].strip():
            return self._found(start, index, self._statements())
        if statement.kind == "insert" and not statement.query:
            return self._found(start, index, self._tables())
        if statement.kind == "query":
            return self._query(statement.start, statement.end, index)
        words = ("WITH (", "AS", "PARTITIONED BY (")
        return self._found(start, index, (Completion(w, "keyword", w) for w in words))

    def _found(self, start: int, index: int, items: Iterator[Completion]) -> Completions:
        text = self.document.text
        word, end = text[start:index].lstrip("'\""), index
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        return Completions(self.document.range(start, end), tuple(matching(items, word)))

    def _statements(self) -> Iterator[Completion]:
        yield from (
            Completion(label, "snippet", text, "statement", snippet=True)
            for label, text in _STATEMENTS.items()
        )
        yield from (Completion(word, "keyword", word) for word in ("SELECT", "WITH"))

    def _tables(self) -> Iterator[Completion]:
        for node in self.relations.nodes:
            if node.kind != "transform":
                yield node_completion(node, self.relations)

    def _query(self, start: int, end: int, index: int) -> Completions | None:
        found = complete_sql(
            self.document.text[start:end], index - start, self.relations,
            functions=self.functions, keywords=KEYWORDS,
        )  # fmt: skip
        if found is None:
            return None
        return Completions(self.document.range(start + found[0], start + found[1]), tuple(found[2]))

    def _in_columns(self, statement: ScriptStatement, index: int) -> Completions:
        assert statement.columns is not None
        found = _WORD.search(self.document.text, statement.columns[0], index)
        start = found.start() if found else index
        if statement.kind == "table":
            return self._found(start, index, (Completion(w, "keyword", w) for w in _TYPES))
        columns = self.relations.columns(statement.name) or ()
        return self._found(start, index, map(column_completion, columns))

    def _option(self, statement: ScriptStatement, index: int) -> Completions | None:
        option = next(
            (each for each in statement.given if each.key[0] <= index <= each.value_span[1]), None
        )
        if option is None:
            return self._found(index, index, self._names(statement, ""))
        if option.value is None and index > option.key[1]:
            return None
        if index <= option.key[1]:
            start = option.key[0]
            return self._found(start, index, self._names(statement, option.name))
        first, last = option.value_span
        if not first <= index <= last:
            return None
        quoted = self.document.text[first - 1] == "'"
        items = self._values(statement, option, quoted=quoted)
        word = self.document.text[first:index]
        return Completions(self.document.range(first, last), tuple(matching(items, word)))

    def known_options(self, statement: ScriptStatement) -> tuple[Kind, dict[str, KnownOption]]:
        """Returns the options of a table by dotted name."""
        node = self.relations.find(statement.name)
        kind: Kind = "sink" if node is not None and node.kind == "sink" else "source"
        root, entry = _as_node(statement, kind)
        known = {
            name: option
            for name, option in options_at(entry, root).items()
            if name not in _OF_CLAUSES
        }
        for option in [*known.values()]:
            if option.is_map:
                prefix = option.name
                if prefix == "format":
                    prefix = statement.option("format") or prefix
                inner = options_at(entry.child(option.name) or _add(entry, option.name), root)
                known |= {f"{prefix}.{name}": each for name, each in inner.items()}
        return kind, known

    def _names(self, statement: ScriptStatement, current: str) -> Iterator[Completion]:
        taken = {each.name for each in statement.given} - {current}
        _, known = self.known_options(statement)
        if "connector" not in taken:
            text = "connector = '$1'"
            yield Completion("connector", "option", text, "text, required", snippet=True)
        for name, option in known.items():
            if name not in taken:
                value = "$1" if option.option.type in _PLAIN else "'$1'"
                yield Completion(
                    name, "option", f"{name} = {value}", option_detail(option),
                    option_text(option), snippet=True,
                )  # fmt: skip

    def _values(
        self, statement: ScriptStatement, option: ScriptOption, *, quoted: bool
    ) -> Iterator[Completion]:
        kind, known = self.known_options(statement)
        if option.name == "connector":
            items = type_completions(kind)
        elif option.name == "format":
            items = type_completions("format")
        else:
            found = known.get(option.name)
            items = value_completions(found) if found else iter(())
        for each in items:
            text = each.text if quoted or each.text in ("true", "false") else f"'{each.text}'"
            yield Completion(each.label, each.kind, text, each.detail, each.documentation)


_PLAIN = frozenset({"integer", "number", "true or false"})
"""The types of options whose values have no quotes."""


def _within(span: tuple[int, int] | None, index: int) -> bool:
    return span is not None and span[0] <= index <= span[1]


def _as_node(statement: ScriptStatement, kind: Kind) -> tuple[Entry, Entry]:
    """Returns the options of a table as the node of a YAML text: its root, and the node."""
    root = Entry("", -1, 0, 0, 0, 0, None)
    node = _add(_add(root, f"{kind}s"), statement.name)
    format_ = statement.option("format")
    for option in statement.given:
        path = ["type"] if option.name == "connector" else option.name.split(".")
        if len(path) > 1 and path[0] == format_:
            path[0] = "format"
        entry = node
        for step in path:
            entry = entry.child(step) or _add(entry, step)
        if path == ["format"]:
            entry = _add(entry, "type")
        entry.value = option.value
    return root, node


def _add(holder: Entry, step: str) -> Entry:
    entry = Entry(step, holder.indent + 2, 0, 0, 0, 0, holder)
    holder.children.append(entry)
    return entry
