"""The columns that SELECT returns: their names, and the columns of the input that they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.value_types import computed_type, sql_type

_GENERATORS = (exp.Explode, exp.Inline, exp.UDTF, exp.Unnest)
_OTHER_GENERATORS = frozenset(
    ["inline_outer", "json_tuple", "stack", "variant_explode", "variant_explode_outer"]
)
_INTEGERS = frozenset(["TINYINT", "SMALLINT", "INT", "BIGINT"])


@dataclass(frozen=True)
class Selected:
    """The columns of a SELECT over sources with names and, as far as known, columns."""

    outputs: Sequence[exp.Expr]
    names: Sequence[str]
    sources: Sequence[Sequence[str] | None]
    columns: tuple[str, ...] | None

    @property
    def has_generators(self) -> bool:
        """Whether one row of the input may be several rows."""
        return any(
            output.find(*_GENERATORS) is not None
            or any(
                call.name.lower() in _OTHER_GENERATORS for call in output.find_all(exp.Anonymous)
            )
            for output in self.outputs
        )

    def find(
        self, source: int, columns: Sequence[str], types: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Returns the columns of the output with the values of columns of a source.

        None unless all are found. A value that is cast without loss is found, too.
        """
        found = [self._find(source, column, types) for column in columns]
        return tuple(name for name in found if name) if all(found) else ()

    def types(self, source: int, types: Mapping[str, str]) -> dict[str, str]:
        """Returns the known types of the columns of the output, by name in lower case."""
        known: dict[str, str] = {}
        for output in self.outputs:
            known |= self._starred_types(output, source, types)
        for output in self.outputs:
            name, value = output.alias_or_name.lower(), _without_check(output)
            if type_ := computed_type(value):
                known[name] = type_
            elif (column := self._column(value, source)) is not None and column in types:
                known[name] = types[column]
            elif not output.is_star:
                known.pop(name, None)
        return known

    def joined_types(self, types: Sequence[Mapping[str, str]]) -> dict[str, str]:
        """Returns the known types of the columns of the output, from those of all sources.

        A column without the name of its source has a type if all columns are known and one source
        has it. Columns of `*` over several sources have none: `USING` merges them.
        """
        if len(types) == 1:
            return self.types(0, types[0])
        found: dict[str, set[str]] = {}
        for output in self.outputs:
            for name, type_ in self._joined_types(output, types).items():
                found.setdefault(name, set()).add(type_)
        return {name: type_ for name, (type_, *others) in found.items() if type_ and not others}

    def _joined_types(self, output: exp.Expr, types: Sequence[Mapping[str, str]]) -> dict[str, str]:
        if output.is_star:
            source = self._source(output) if isinstance(output, exp.Column) else None
            return {} if source is None else self._starred_types(output, source, types[source])
        value = _without_check(output)
        type_ = computed_type(value)
        if not type_ and (source := self._source(value)) is not None:
            type_ = types[source].get(value.name.lower(), "")
        return {output.alias_or_name.lower(): type_}

    def _starred_types(
        self, output: exp.Expr, source: int, types: Mapping[str, str]
    ) -> dict[str, str]:
        """Returns the types of the columns of a source that an output covers, if it is a star."""
        return {name: type_ for name, type_ in types.items() if self._covers(output, source, name)}

    def _source(self, value: exp.Expr) -> int | None:
        """Returns the only source of a column, or of all columns of a source; None if unknown."""
        if not isinstance(value, exp.Column) or len(value.parts) > 2:
            return None
        if value.table:
            found = [i for i, name in enumerate(self.names) if name == value.table.lower()]
        elif any(columns is None for columns in self.sources):
            return None
        else:
            found = [
                index
                for index, columns in enumerate(self.sources)
                if value.name.lower() in map(str.lower, columns or ())
            ]
        return found[0] if len(found) == 1 else None

    def is_column(self, name: str) -> bool | None:
        """Returns whether a source has a column; None if the columns are not known."""
        known = [columns for columns in self.sources if columns is not None]
        if any(name.lower() in map(str.lower, columns) for columns in known):
            return True
        return None if len(known) < len(self.sources) else False

    def _find(self, source: int, column: str, types: Mapping[str, str]) -> str:
        name, found = column.lower(), ""
        for output in self.outputs:
            if self._covers(output, source, name):
                found = found or column
            elif not output.is_star and self._is(output, source, name, types):
                found = found or output.alias_or_name
        return found if found and self._is_unique(found, source) else ""

    def _is_unique(self, name: str, source: int) -> bool:
        """Returns whether one column of the output has a name."""
        if self.columns is not None:
            return [column.lower() for column in self.columns].count(name.lower()) == 1
        stars = sum(self._covers(output, source, name.lower()) for output in self.outputs)
        named = [o for o in self.outputs if not o.is_star]
        return stars + sum(o.alias_or_name.lower() == name.lower() for o in named) == 1

    def _covers(self, output: exp.Expr, source: int, column: str = "") -> bool:
        """Returns whether an output is a wildcard with the columns of a source, or with one."""
        if not output.is_star:
            return False
        if isinstance(output, exp.Column) and output.table.lower() != self.names[source]:
            return False
        star = output.this if isinstance(output, exp.Column) else output
        changed = [
            each.alias_or_name.lower()
            for part in ("except_", "except", "replace", "rename")
            for each in star.args.get(part) or ()
        ]
        return column not in changed if column else True

    def _is(self, output: exp.Expr, source: int, column: str, types: Mapping[str, str]) -> bool:
        """Returns whether an output is a column of a source, perhaps cast without loss."""
        value, targets = _without_check(output), list[str]()
        while isinstance(value, exp.Cast) and not value.args.get("safe"):
            targets.append(sql_type(value.to.sql("spark")))
            value = _without_check(value.this)
        type_ = types.get(column, "")
        for target in reversed(targets):
            if not _is_lossless(type_, target):
                return False
            type_ = target
        return self._column(value, source) == column

    def _column(self, value: exp.Expr, source: int) -> str | None:
        """Returns the column of a source that a value is, in lower case, or None.

        A name without a relation is a column of every source that has it.
        """
        if not isinstance(value, exp.Column) or value.is_star or len(value.parts) > 2:
            return None
        is_of_source = not value.table or value.table.lower() == self.names[source]
        return value.name.lower() if is_of_source else None


def read_selected(
    select: exp.Select, names: Sequence[str], sources: Sequence[Sequence[str] | None]
) -> Selected:
    """Returns the columns of a SELECT over sources with names in lower case and columns."""
    joins = select.args.get("joins") or ()
    merges = any(join.args.get("using") or join.args.get("method") for join in joins)
    hidden = any((join.kind or "").upper() in ("SEMI", "ANTI") for join in joins)
    is_partial = merges or hidden or bool(select.args.get("laterals"))
    selected = Selected(select.expressions, names, sources, None)
    columns: list[str] = []
    for output in select.expressions:
        if not output.is_star:
            columns.append(output.alias_or_name)
            continue
        parts = _starred(selected, output)
        if parts is None or is_partial:
            return selected
        columns += parts
    return Selected(select.expressions, names, sources, tuple(columns))


def _starred(selected: Selected, output: exp.Expr) -> list[str] | None:
    """Returns the columns of a wildcard; None if they are not known."""
    found: list[str] = []
    for index, columns in enumerate(selected.sources):
        if not selected._covers(output, index):
            continue
        if columns is None:
            return None
        found += [name for name in columns if selected._covers(output, index, name.lower())]
    return found


def _is_lossless(type_: str, target: str) -> bool:
    """Returns whether different values of a type differ in another type, or their cast fails."""
    if type_ == target:
        return bool(type_)
    return type_ in _INTEGERS and target in {*_INTEGERS, "STRING"}


def _without_check(value: exp.Expr) -> exp.Expr:
    """Returns a value without its alias, and without the error of a null in its place."""
    value = value.unalias()
    while isinstance(value, exp.Paren):
        value = value.this
    if isinstance(value, exp.Coalesce) and all(map(_raises, value.expressions)):
        return _without_check(value.this)
    return value


def _raises(value: exp.Expr) -> bool:
    while isinstance(value, exp.Cast):
        value = value.this
    return isinstance(value, exp.Anonymous) and value.name.lower() == "raise_error"
