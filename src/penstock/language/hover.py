"""Documentation of the word at a place: options, types, nodes, columns, functions, error codes."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.error_codes import ERROR_CODES
from penstock.language.document import Document
from penstock.language.functions import FunctionHelp, function_help
from penstock.language.model import Hover, Position
from penstock.language.navigation import word_at
from penstock.language.option_completion import option_text, type_text
from penstock.language.options import holder_of, options_at
from penstock.language.reading import Reading
from penstock.language.relations import Relation
from penstock.language.script import ScriptStatement
from penstock.language.script_completion import ScriptCompleter
from penstock.language.sql_scope import scope_at
from penstock.language.yaml_completion import column_owners, is_column_option, is_sql
from penstock.language.yaml_entry import Entry
from penstock.language.yaml_place import YamlPlace, place_at
from penstock.sdk.registry import Kind


def hover(reading: Reading, index: int) -> Hover | None:
    """Returns the documentation at an index, with the meaning of the error there."""
    document = reading.document
    word = word_at(document, index)
    texts = [*_errors(reading, document.position(index))]
    if word is not None:
        is_script = reading.language == "sql"
        found = _in_script(reading, *word) if is_script else _in_yaml(reading, index, word)
        texts += [found] if found else []
    if not texts:
        return None
    _, start, end = word or ("", index, index)
    return Hover("\n\n---\n\n".join(texts), document.range(start, end))


def _errors(reading: Reading, position: Position) -> Iterator[str]:
    """Yields the meanings of the codes of errors at a position, if the text was checked."""
    if reading.planned.text != reading.document.text:
        return
    for error in reading.planned.errors:
        where = error.where
        if where is None or where.line != position.line or error.code not in ERROR_CODES:
            continue
        if where.column <= position.column <= where.column + where.length:
            yield f"`{error.code}`: {ERROR_CODES[error.code]}"


def _in_yaml(reading: Reading, index: int, word: tuple[str, int, int]) -> str | None:
    if reading.language != "yaml":
        return None
    root = reading.root
    place = place_at(reading.document, root, index)
    if place is None:
        return None
    if not place.is_key and is_sql(place.holder):
        text = reading.document.text[place.start : place.end]
        owners = () if place.holder.step == "sql" else column_owners(place.holder)
        return _in_sql(reading, text, index - place.start, word[0], owners)
    return _of_key(reading, place) if place.is_key else _of_value(reading, place)


def _of_key(reading: Reading, place: YamlPlace) -> str | None:
    name = str(place.entry.step) if place.entry else ""
    route = place.holder.route
    if len(route) == 1 and (node := reading.relations.find(name)) is not None:
        return node_text(reading, node)
    if is_column_option(place.holder) and (text := _column(reading, place.holder, name)):
        return text
    known = options_at(place.holder, reading.root).get(name)
    return option_text(known) if known else None


def _of_value(reading: Reading, place: YamlPlace) -> str | None:
    entry = place.holder
    value = entry.value or ""
    option = entry.parent if isinstance(entry.step, int) else entry
    if option is None or option.parent is None:
        return None
    holder = holder_of(option.parent, reading.root)
    if option.step == "type" and holder.kind is not None:
        return type_text(holder.kind, value) or None
    if option.step == "format":
        return type_text("format", value) or None
    if is_column_option(option) and (text := _column(reading, option, value)):
        return text
    if option.step in ("from", "table") and (node := reading.relations.find(value)):
        return node_text(reading, node)
    known = options_at(option.parent, reading.root).get(str(option.step))
    return option_text(known) if known else None


def _column(reading: Reading, option: Entry, name: str) -> str | None:
    for owner in column_owners(option):
        for column in reading.relations.columns(owner) or ():
            if column.name.lower() == name.lower():
                return f"`{column}` of {owner}"
    return None


def node_text(reading: Reading, node: Relation) -> str:
    """Returns the kind, the type and the columns of a node, as Markdown."""
    columns = reading.relations.columns(node.name)
    lines = [f"* `{str(column).strip()}`" for column in columns or ()]
    listed = "\n".join(lines) if lines else "The columns are not known without Spark."
    return f"{node.kind} **{node.name}** ({node.type})\n\n{listed}"


def _in_sql(
    reading: Reading, text: str, index: int, word: str, inputs: tuple[str, ...] = ()
) -> str | None:
    """Returns the documentation of a column, a relation or a function in a query."""
    scope = scope_at(text, index, reading.relations.columns)
    if scope is None:
        return None
    name = word.rpartition(".")[2].lower()
    owners = [(each.name, each.columns) for each in scope.relations]
    owners += [(each, reading.relations.columns(each)) for each in inputs]
    for owner, columns in owners:
        if scope.qualifier is not None and owner.lower() != scope.qualifier.lower():
            continue
        for column in columns or ():
            if column.name.lower() == name and scope.clause != "relation":
                return f"`{str(column).strip()}` of {owner}"
    if node := reading.relations.find(word):
        return node_text(reading, node)
    own = (each for each in reading.planned.functions if each.name.lower() == name)
    function = next(own, None) or function_help().get(name)
    return function_text(function) if function else None


def function_text(function: FunctionHelp) -> str:
    """Returns the forms and the documentation of a function, as Markdown."""
    forms = "\n".join(function.forms)
    return f"```sql\n{forms}\n```\n\n{function.text}"


def _in_script(reading: Reading, word: str, start: int, end: int) -> str | None:
    document = reading.document
    statement = next(each for each in reading.statements if start <= each.end)
    if statement.query and statement.query[0] <= start:
        first, last = statement.query
        return _in_sql(reading, document.text[first:last], end - first, word)
    if statement.options and statement.options[0] <= start <= statement.options[1]:
        return _of_option(reading, document, statement, start)
    node = reading.relations.find(word)
    return node_text(reading, node) if node else None


def _of_option(
    reading: Reading, document: Document, statement: ScriptStatement, index: int
) -> str | None:
    kind, known = ScriptCompleter(document, (), reading.relations).known_options(statement)
    for option in statement.given:
        if option.value_span[0] <= index <= option.value_span[1] and option.value:
            if option.name == "connector":
                return type_text(kind, option.value) or None
            if option.name == "format":
                return type_text("format", option.value) or None
        if option.key[0] <= index <= option.value_span[1] and option.name in known:
            return option_text(known[option.name])
        if option.key[0] <= index <= option.key[1] and option.name == "connector":
            return _of_type(kind)
    return None


def _of_type(kind: Kind) -> str:
    return f"The type of the {kind}."
