"""`CREATE FUNCTION` and `CREATE MACRO`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.core.errors import SpecError
from penstock.core.names import quote_name
from penstock.core.text import did_you_mean
from penstock.spec.dialects.python_functions import OPPOSITE_OPTIONS, SPELLINGS
from penstock.spec.script.options import check_unique, read_options
from penstock.spec.script.reader import TokenReader, spark_type
from penstock.spec.script.tokens import Text
from penstock.spec.script.tree_nodes import derived_node, map_node, text_node
from penstock.spec.tree.nodes import File, Node, ScalarNode

_CLAUSES = (
    "LANGUAGE", "DETERMINISTIC", "NOT", "STRICT", "RETURNS", "CALLED", "COMMENT", "WITH", "AS",
    "RETURN", "VOLATILE", "IMMUTABLE",
)  # fmt: skip
_OPTIONS = ("vectorized", "concurrency", "timeout", "dependencies", "ordered")


@dataclass
class CreateFunction:
    """A function: its name, and its options as in `functions` of a YAML file."""

    name: Text
    options: dict[Text, Node] = field(default_factory=dict)
    expression: Text | None = None
    """The expression of a function in SQL."""

    def add(self, option: str, value: Node) -> None:
        """Sets an option."""
        self.options[Text(option, 0, 0)] = value

    def node(self, file: File) -> Node:
        """Returns the options as a node."""
        return map_node(file, self.options)


def read_function(reader: TokenReader) -> CreateFunction:
    """Reads a statement after CREATE. Raises SpecError."""
    if reader.accept("MACRO"):
        return _read_macro(reader)
    aggregate = reader.accept("AGGREGATE")
    reader.expect("FUNCTION")
    reader.accept("IF", "NOT", "EXISTS")
    function = CreateFunction(reader.name("the name of the function"))
    if aggregate:
        function.add("kind", derived_node(reader.file, "aggregate", function.name))
    _add_parameters(reader, function, typed=True)
    language = None
    while not reader.ended:
        if reader.accept("RETURNS", "NULL", "ON", "NULL", "INPUT") or reader.accept("STRICT"):
            function.add("skip_nulls", derived_node(reader.file, True, function.name))
        elif reader.accept("RETURNS"):
            _read_returns(reader, function)
        elif reader.accept("LANGUAGE"):
            language = reader.name("PYTHON or SQL")
        elif reader.accept("NOT", "DETERMINISTIC") or reader.accept("VOLATILE"):
            function.add("deterministic", derived_node(reader.file, False, function.name))
        elif reader.accept("WITH"):
            _read_options(reader, function)
        elif reader.accept("AS"):
            _read_code(reader, function, language)
        elif reader.accept("RETURN"):
            function.expression = reader.rest("an expression")
        elif reader.accept("COMMENT"):
            reader.string("a comment, in quotes")
        elif not _accept_default(reader):
            raise reader.error("RETURNS, LANGUAGE, AS, RETURN or another clause of the function")
    if function.expression is None and "code" not in {key.value for key in function.options}:
        raise reader.error("LANGUAGE PYTHON AS $$ code $$, or RETURN expression")
    return function


def _accept_default(reader: TokenReader) -> bool:
    """Reads a clause that states the default. Returns whether there was one."""
    return (
        reader.accept("DETERMINISTIC")
        or reader.accept("IMMUTABLE")
        or reader.accept("CALLED", "ON", "NULL", "INPUT")
    )


def _read_macro(reader: TokenReader) -> CreateFunction:
    function = CreateFunction(reader.name("the name of the macro"))
    _add_parameters(reader, function, typed=False)
    reader.accept("AS")
    if reader.at("TABLE"):
        raise SpecError(
            "a macro is an expression, not a table",
            code="unsupported-sql",
            where=reader.location(reader.name("an expression")),
            hint="write a view",
        )
    function.expression = reader.rest("an expression")
    return function


def _add_parameters(reader: TokenReader, function: CreateFunction, *, typed: bool) -> None:
    """Reads `(name type, ...)`. The types of a macro are optional."""
    parameters: dict[Text, Node] = {}

    def read() -> None:
        name = reader.name("the name of a parameter")
        if any(known.value.lower() == name.value.lower() for known in parameters):
            raise SpecError(
                f'duplicate parameter "{name.value}"',
                code="duplicate-name",
                where=reader.location(name),
                hint="rename or remove one of the parameters",
            )
        if typed or not (reader.at(",") or reader.at(")")):
            type_ = spark_type(reader, reader.type((",",)))
            parameters[name] = text_node(reader.file, type_)
        else:
            parameters[name] = _nothing(reader.file, name)

    if reader.at("(", ")"):
        reader.expect("(", ")")
    else:
        reader.items(read)
    if parameters:
        function.add("args", map_node(reader.file, parameters))


def _nothing(file: File, origin: Text) -> Node:
    node = derived_node(file, "", origin)
    return node.__class__(None, "null", "null", node.location, file.base)


def _read_returns(reader: TokenReader, function: CreateFunction) -> None:
    if not reader.accept("TABLE"):
        function.add("returns", text_node(reader.file, spark_type(reader, reader.type(_CLAUSES))))
        return
    columns: list[tuple[Text, Text]] = []

    def read() -> None:
        name = reader.name("the name of a column")
        columns.append((name, spark_type(reader, reader.type((",",)))))

    reader.items(read)
    text = ", ".join(f"{_column(name.value)} {type_.value}" for name, type_ in columns)
    returns = Text(text, columns[0][0].start, columns[-1][1].end)
    function.add("kind", derived_node(reader.file, "table", function.name))
    function.add("returns", text_node(reader.file, returns))


def _read_options(reader: TokenReader, function: CreateFunction) -> None:
    seen: dict[str, str] = {}
    for option in check_unique(reader.file, read_options(reader)):
        name = SPELLINGS.get(option.name, option.name)
        if name not in _OPTIONS:
            raise SpecError(
                f'unknown option "{option.name}"',
                code="unknown-option",
                where=reader.location(option.path[0]),
                hint=did_you_mean(option.name, [*_OPTIONS, *SPELLINGS]),
            )
        if name in seen:
            raise SpecError(
                f'expected only one of "{seen[name]}" and "{option.name}"',
                code="duplicate-key",
                where=reader.location(option.path[0]),
                hint="remove one of the options",
            )
        seen[name] = option.name
        value = option.value
        if option.name in OPPOSITE_OPTIONS and isinstance(value, ScalarNode):
            if not isinstance(value.value, bool):
                raise SpecError(
                    f"expected true or false, found {value.written}",
                    code="invalid-value",
                    where=value.location,
                )
            value = replace(value, value=not value.value, span=None)
        function.options[option.path[0]._replace(value=name)] = value


def _read_code(reader: TokenReader, function: CreateFunction, language: Text | None) -> None:
    if language is None or language.value.upper() != "PYTHON":
        name = language.value if language is not None else "no language"
        raise SpecError(
            f"expected LANGUAGE PYTHON, found {name}",
            code="unknown-language",
            where=reader.location(language if language is not None else function.name),
            hint="write LANGUAGE PYTHON AS $$ code $$, or RETURN expression",
        )
    function.add("code", text_node(reader.file, reader.string("$$, the code, and $$")))
    reader.end()


def _column(name: str) -> str:
    return name if name.isidentifier() else quote_name(name)
