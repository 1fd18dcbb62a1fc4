"""Selects with groups and OVER or LIMIT, divided: the groups, and the select of their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.sql.dialect.lineage import window_name
from penstock.sql.dialect.window_calls import SPARK_WINDOWS, WINDOWS
from penstock.sql.functions import AGGREGATES
from penstock.sql.text.calls import whole_call
from penstock.sql.text.clauses import Item, Part, Select
from penstock.sql.text.edits import Edit
from penstock.sql.text.quoting import quoted
from penstock.sql.text.sql import Sql

_WORDS_OF_ARGUMENTS = {
    "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "DESC", "DISTINCT", "ELSE", "END", "FALSE",
    "FIRST", "FROM", "IGNORE", "IN", "INTERVAL", "IS", "LAST", "LIKE", "NOT", "NULL", "NULLS", "OR",
    "ORDER", "RESPECT", "THEN", "TRUE", "WHEN", "DAY", "HOUR", "MINUTE", "MONTH", "SECOND",
    "WEEK", "YEAR",
    "DAYS", "HOURS", "MINUTES", "MONTHS", "SECONDS", "WEEKS", "YEARS",
}  # fmt: skip
_WORDS_BEFORE_PARENTHESES = _WORDS_OF_ARGUMENTS | {
    "CAST", "EXISTS", "EXTRACT", "FILTER", "GROUP", "ON", "OVER", "PARTITION", "QUALIFY",
    "TRY_CAST", "USING", "VALUES", "WHERE", "WITHIN",
}  # fmt: skip
_AFTER = ("QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET")
"""The clauses that follow the groups."""


def split_groups(sql: Sql, select: Select, helper: str) -> tuple[list[Edit], list[Edit]] | None:
    """Returns the edits to the select of the groups, and those to the select that reads them.

    None for a form that cannot be divided.
    """
    over = [item for item in select.items if _has_word(sql, item.part, "OVER")]
    plain = [item for item in select.items if item not in over]
    names = [_name(sql, item) for item in plain]
    if any(_has_word(sql, item.part, "SELECT") or item.is_star for item in select.items):
        return None
    if len({name.lower() for name in names}) < len(names) or "FROM" not in select.clauses:
        return None
    groups = _Groups(sql, select, dict(zip(plain, names, strict=True)))
    outer = [
        Edit(sql[first].start, sql[last - 1].end, quoted(name))
        for (first, last), name in zip((item.part for item in plain), names, strict=True)
    ]
    parts = [item.expression for item in over]
    parts += [select.clauses[word] for word in _AFTER if word in select.clauses]
    for part in parts:
        outer += groups.references(part)
    last = select.clauses["HAVING" if "HAVING" in select.clauses else "GROUP"][1]
    first = select.clauses["FROM"][0] - 1
    outer.append(Edit(sql[first].start, sql[last - 1].end, f"FROM {helper}"))
    return [*groups.selected(), *_numbers(sql, select, over), *_rest(sql, select, last)], outer


class _Groups:
    """The columns of the groups of a select: those that it selects, and those that OVER needs."""

    def __init__(self, sql: Sql, select: Select, names: dict[Item, str]) -> None:
        self._sql, self._select, self._names = sql, select, names
        self._hidden: dict[tuple[str, ...], tuple[str, str]] = {}
        self._known = {
            self._words(item.expression): name
            for item, name in names.items()
            if len(self._words(item.expression)) > 1 or sql[item.part[0]].is_name
        }
        aliases: dict[tuple[str, ...], str] = {
            (name.lower(),): name
            for item, name in names.items()
            if name.lower() not in self._words(item.expression)
        }
        self._known = {**aliases, **self._known}
        self._owners = {(each.alias or each.name or "").lower() for each in select.sources}
        self._groups = {self._words(part): part for part in select.groups}
        self._window = next(
            (part for part in select.groups if sql[part[0]].value.lower() in (*WINDOWS, "window")),
            None,
        )

    def selected(self) -> list[Edit]:
        """Returns the edits to the items: the columns of the groups, without those with OVER."""
        sql, items, edits = self._sql, self._select.items, list[Edit]()
        if not items:
            return edits
        ends = [sql[item.part[1] - 1].end for item in items]
        is_first = True
        for number, item in enumerate(items):
            if item not in self._names:
                start, end = ends[number - 1], ends[number]
                if is_first:
                    start = sql[item.part[0]].start
                    end = end if item is items[-1] else sql[items[number + 1].part[0]].start
                edits.append(Edit(start, end, ""))
                continue
            is_first = False
            if item.name is None:
                edits.append(Edit(ends[number], ends[number], f" AS {quoted(self._names[item])}"))
        columns = [f"{text} AS {name}" for text, name in self._hidden.values()]
        if is_first and not columns:
            columns = ["1 AS _group"]
        separator = "" if is_first else ", "
        if columns:
            edits.append(Edit(ends[-1], ends[-1], separator + ", ".join(columns)))
        return edits

    def references(self, part: Part) -> list[Edit]:
        """Returns the edits that read aggregates and groups as columns."""
        edits: list[Edit] = []
        position, last = part
        while position < last:
            found = self._reference(position, last)
            if found is None:
                position += 1
                continue
            end, name = found
            sql = self._sql
            edits.append(Edit(sql[position].start, sql[end - 1].end, quoted(name)))
            position = end
        return edits

    def _reference(self, position: int, last: int) -> tuple[int, str] | None:
        """Returns the end and the column of a group or an aggregate that begins at a token."""
        sql = self._sql
        if sql.is_sign(position - 1, "."):
            return None
        longest = max(map(len, (*self._known, *self._groups)), default=0)
        for end in range(min(last, position + longest), position, -1):
            words = self._words((position, end))
            if words in self._known:
                return end, self._known[words]
            if words in self._groups and sql[position].is_name:
                return end, self._column(words, (position, end))
        if self._is_aggregate(position):
            end = self._after_filter(sql.closing[position + 1] + 1)
            if sql.word(end) != "OVER":
                return end, self._column(self._words((position, end)), (position, end))
        if sql.word(position) == "WINDOW" and self._window and not sql.is_sign(position + 1, "("):
            words = self._words(self._window)
            return position + 1, self._known.get(words) or self._column(words, self._window)
        if sql[position].value.lower() in self._owners and sql.is_sign(position + 1, "."):
            return self._owned(position)
        return None

    def _owned(self, position: int) -> tuple[int, str] | None:
        """Returns the column of a group `k` that is written as `t.k`, or of `t.k` as `t.k`."""
        name = self._sql[position + 2]
        if not name.is_name or self._sql.is_sign(position + 3, "("):
            return None
        words = self._words((position + 2, position + 3))
        if words in self._groups and words not in self._known:
            return position + 3, self._column(words, (position + 2, position + 3))
        return position + 3, self._known.get(words, name.value)

    def _is_aggregate(self, position: int) -> bool:
        """Returns whether a call is of an aggregate of Spark, or of the user.

        Only the arguments of an aggregate are columns that are no groups.
        """
        sql = self._sql
        if not sql.is_sign(position + 1, "(") or position + 1 not in sql.closing:
            return False
        if sql[position].value.lower() in AGGREGATES:
            return True
        if sql.word(position) in _WORDS_BEFORE_PARENTHESES:
            return False
        names = [*self._argument_names(position + 2, sql.closing[position + 1])]
        return bool(names) and not any((name,) in self._known for name in names)

    def _argument_names(self, position: int, last: int) -> Iterator[str]:
        """Yields the columns of arguments that are no groups, and not within another call."""
        sql = self._sql
        while position < last:
            if sql.is_sign(position, "(") and position in sql.closing:
                position = sql.closing[position]
            elif self._is_column(position):
                words = self._words((position, position + 1))
                if words not in self._groups and words[0] not in self._owners:
                    yield words[0]
            position += 1

    def _is_column(self, position: int) -> bool:
        sql = self._sql
        return (
            sql[position].is_name
            and sql.word(position) not in _WORDS_OF_ARGUMENTS
            and not sql.is_sign(position + 1, "(")
            and sql.word(position + 1) != "FROM"
            and sql.word(position - 1) != "AS"
            and not (sql.is_sign(position - 1, ".") and not self._is_owner(position - 2))
        )

    def _is_owner(self, position: int) -> bool:
        return self._sql[position].value.lower() in self._owners

    def _after_filter(self, position: int) -> int:
        sql = self._sql
        if sql.words(position, "WITHIN", "GROUP"):
            position = sql.closing.get(position + 2, position + 1) + 1
        if sql.word(position) == "FILTER" and sql.is_sign(position + 1, "("):
            position = sql.closing.get(position + 1, position) + 1
        return position

    def _column(self, words: tuple[str, ...], part: Part) -> str:
        """Returns the column of an expression, which the groups select under a name of its own."""
        if words not in self._hidden:
            self._hidden[words] = self._sql.slice(*part), f"_group_{len(self._hidden) + 1}"
        return self._hidden[words][1]

    def _words(self, part: Part) -> tuple[str, ...]:
        return tuple(
            token.value if token.kind == "string" else token.value.lower()
            for token in self._sql.tokens[slice(*part)]
        )


def _name(sql: Sql, item: Item) -> str:
    """Returns the name of a column of the output, as Spark names it."""
    if item.name is not None:
        return item.name
    call = whole_call(sql, item.expression, *WINDOWS, *SPARK_WINDOWS)
    if call is not None:
        return window_name(sql, call)
    return sql.slice(*item.expression).replace("(*)", "(1)")


def _numbers(sql: Sql, select: Select, over: Sequence[Item]) -> list[Edit]:
    """Returns the edits to `GROUP BY 2` after the items with OVER are left out."""
    edits = []
    for first, last in select.groups:
        token = sql[first]
        if last - first == 1 and token.kind == "number" and token.value.isdecimal():
            number = int(token.value)
            left_out = sum(1 for item in select.items[:number] if item in over)
            if left_out:
                edits.append(Edit(token.start, token.end, str(number - left_out)))
    return edits


def _rest(sql: Sql, select: Select, last: int) -> list[Edit]:
    """Returns the edit that removes the clauses after the groups."""
    end = sql[select.part[1] - 1].end
    return [Edit(sql[last - 1].end, end, "")] if sql[last - 1].end < end else []


def _has_word(sql: Sql, part: Part, word: str) -> bool:
    return any(sql.word(index) == word for index in range(*part))
