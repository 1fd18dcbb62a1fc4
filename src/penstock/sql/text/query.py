"""Reading of the clauses of queries."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.clauses import Item, Part, Query, Select, Source
from penstock.sql.text.sql import Sql

_SET_OPERATORS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT", "WINDOW", "OFFSET",
            "SORT", "DISTRIBUTE", "CLUSTER")  # fmt: skip
_JOINS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL",
          "LATERAL")  # fmt: skip
_NO_ALIASES = frozenset({*_JOINS, *_CLAUSES, "ON", "USING", "TABLESAMPLE", "PIVOT", "UNPIVOT",
                         "WATERMARK", "END"})  # fmt: skip


def read_query(sql: Sql, first: int = 0, last: int | None = None) -> Query | None:
    """Returns the clauses of a query; None for a text of another form."""
    last = len(sql) if last is None else last
    while first < last and sql.is_sign(first, "(") and sql.closing.get(first) == last - 1:
        first, last = first + 1, last - 1
    ctes: dict[str, Query] = {}
    start = first
    if sql.word(first) == "WITH":
        start = _read_ctes(sql, first + 1, last, ctes)
    query = Query((start, last), [], ctes)
    position = begin = start
    while position <= last:
        word = sql.word(position) if position < last else "UNION"
        if word in _SET_OPERATORS and not _excludes_columns(sql, position):
            operand = read_select(sql, begin, position)
            if operand is None:
                return None
            query.selects.append(operand)
            if position < last:
                every = sql.word(position + 1)
                query.operators.append(word if every != "ALL" else f"{word} ALL")
                position += every in ("ALL", "DISTINCT")
            begin = position + 1
        position = sql.closing.get(position, position) + 1
    return query


def subqueries(sql: Sql, select: Select) -> Iterator[Query]:
    """Yields the queries in the expressions of a select, as in `EXISTS (SELECT ...)`."""
    ends = {source.part[0]: source.part[1] for source in select.sources}
    position, last = select.part
    while position < last:
        if position in ends:
            position = ends[position]
        elif sql.is_sign(position, "(") and sql.word(position + 1) in ("SELECT", "WITH"):
            closing = sql.closing.get(position, last)
            query = read_query(sql, position + 1, closing)
            if query is not None:
                yield query
            position = closing
        else:
            position += 1


def _read_ctes(sql: Sql, position: int, last: int, ctes: dict[str, Query]) -> int:
    """Reads `name (columns) AS (query), ...`. Returns the token after them."""
    while position + 2 < last and sql[position].is_name:
        name, columns = sql[position].value.lower(), None
        position += 1
        if sql.is_sign(position, "("):
            opening, closing = position, sql.closing.get(position, position)
            columns, position = (opening + 1, closing), closing + 1
        if sql.word(position) != "AS" or not sql.is_sign(position + 1, "("):
            break
        closing = sql.closing.get(position + 1, last)
        query = read_query(sql, position + 2, closing)
        if query is not None:
            query.columns = columns
            ctes[name] = query
        position = closing + 1
        if not sql.is_sign(position, ","):
            break
        position += 1
    return position


def read_select(sql: Sql, first: int, last: int) -> Select | None:
    """Returns the clauses of one SELECT; None for a text of another form."""
    while first < last and sql.is_sign(first, "(") and sql.closing.get(first) == last - 1:
        first, last = first + 1, last - 1
    if sql.word(first) != "SELECT":
        return None
    distinct = sql.word(first + 1) in ("DISTINCT", "ALL")
    start = first + 1 + distinct
    on: Part | None = None
    if (
        sql.word(first + 1) == "DISTINCT"
        and sql.word(start) == "ON"
        and sql.is_sign(start + 1, "(")
    ):
        on = start + 2, sql.closing.get(start + 1, last)
        start = on[1] + 1
    clauses, end = _clauses(sql, start, last)
    groups: list[Part] = []
    if "GROUP" in clauses:
        groups = list(sql.split(*clauses["GROUP"], ","))
    items = [_item(sql, part) for part in sql.split(start, end, ",")]
    sources = list(_sources(sql, *clauses["FROM"])) if "FROM" in clauses else []
    is_distinct = sql.word(first + 1) == "DISTINCT"
    return Select((first, last), items, sources, groups, clauses, start, is_distinct, on)


def _clauses(sql: Sql, first: int, last: int) -> tuple[dict[str, Part], int]:
    """Returns the clauses, and the token after the selected items."""
    starts: list[tuple[str, int]] = []
    position = first
    while position < last:
        word = sql.word(position)
        if word in _CLAUSES and _is_clause(sql, position, word):
            starts.append((word, position))
        position = sql.closing.get(position, position) + 1
    ends = [*(start for _, start in starts[1:]), last][: len(starts)]
    clauses = {
        word: (start + 1 + (sql.word(start + 1) == "BY"), end)
        for (word, start), end in zip(starts, ends, strict=True)
    }
    return clauses, starts[0][1] if starts else last


def _is_clause(sql: Sql, position: int, word: str) -> bool:
    if word == "WINDOW":
        return sql.words(position + 2, "AS") and sql.is_sign(position + 3, "(")
    if sql.is_sign(position - 1, ".") or sql.word(position - 1) in ("AS", "WITHIN"):
        return False
    return word != "FROM" or sql.word(position - 1) != "DISTINCT"


def _excludes_columns(sql: Sql, position: int) -> bool:
    """Returns whether a word is the EXCEPT of `* EXCEPT (a, b)`, or EXCLUDE."""
    return sql.word(position) in ("EXCEPT", "EXCLUDE") and sql.is_sign(position - 1, "*")


def _item(sql: Sql, part: Part) -> Item:
    first, last = part
    star = first if sql.is_sign(first, "*") else first + 2 if sql.is_sign(first + 1, ".") else last
    if star < last and sql.is_sign(star, "*"):
        names = sql.tokens[star + 1 : last] if _excludes_columns(sql, star + 1) else []
        excluded = frozenset(token.value.lower() for token in names[1:] if token.is_name)
        return Item(part, part, None, False, True, excluded)
    if last - first >= 3 and sql.word(last - 2) == "AS" and sql[last - 1].is_name:
        return Item(part, (first, last - 2), sql[last - 1].value, True)
    implicit = (
        last - first >= 2
        and sql[last - 1].is_name
        and (sql.word(last - 1) not in _NO_ALIASES or sql.word(last - 1) == "WINDOW")
        and (sql[last - 2].kind != "sign" or sql[last - 2].value in (")", "]"))
        and sql.operand_before(last - 1) is not None
        and not _ends_expression(sql, last - 1)
    )
    if implicit:
        return Item(part, (first, last - 1), sql[last - 1].value, True)
    return Item(part, part, column_name(sql, part), False)


def _ends_expression(sql: Sql, position: int) -> bool:
    """Returns whether a word is the end of an expression: `IGNORE NULLS`, `INTERVAL '1' HOUR`."""
    is_nulls = sql.word(position) == "NULLS" and sql.word(position - 1) in ("IGNORE", "RESPECT")
    return is_nulls or sql.word(position - 2) == "INTERVAL"


def column_name(sql: Sql, part: Part) -> str | None:
    """Returns the column of a plain reference: `b` of `a.b`; None for other expressions."""
    first, last = part
    if (last - first) % 2 == 0 or not sql[last - 1].is_name:
        return None
    dots = all(sql.is_sign(index, ".") for index in range(first + 1, last, 2))
    return sql[last - 1].value if dots and sql[first].is_name else None


def _sources(sql: Sql, first: int, last: int) -> Iterator[Source]:
    position, join = first, None
    while position < last:
        if sql.is_sign(position, ","):
            join, position = ",", position + 1
            continue
        words = []
        while position < last and sql.word(position) in _JOINS:
            words.append(sql.word(position))
            position += 1
        join = " ".join(words) or join
        if position >= last:
            return
        source, position = _source(sql, position, last)
        source.join, join = join, None
        yield source


def _source(sql: Sql, position: int, last: int) -> tuple[Source, int]:
    """Returns a relation with its alias and condition, and the token after it."""
    start, name, query = position, None, None
    if sql.is_sign(position, "("):
        closing = sql.closing.get(position, last - 1)
        query = read_query(sql, position + 1, closing)
        position = closing + 1
    else:
        name = sql[position].value if sql[position].is_name else None
        position += 1
        while sql.is_sign(position, ".") and position + 1 < last:
            name, position = sql[position + 1].value, position + 2
        if sql.is_sign(position, "("):
            name, position = None, sql.closing.get(position, position) + 1
    source = Source((start, position), name, query, None)
    if position < last and sql.word(position) == "AS":
        position += 1
    if position < last and sql[position].is_name and sql.word(position) not in _NO_ALIASES:
        source.alias, position = sql[position].value, position + 1
        if position < last and sql.is_sign(position, "("):
            closing = sql.closing.get(position, last - 1)
            source.columns, position = (position + 1, closing), closing + 1
    if position < last and sql.word(position) == "ON":
        end = _end_of_condition(sql, position + 1, last)
        source.condition, position = (position + 1, end), end
    if position < last and sql.word(position) == "USING" and sql.is_sign(position + 1, "("):
        source.using = position + 2, sql.closing.get(position + 1, last)
    while position < last and not (sql.is_sign(position, ",") or sql.word(position) in _JOINS):
        position = sql.closing.get(position, position) + 1
    return source, position


def _end_of_condition(sql: Sql, position: int, last: int) -> int:
    while position < last and not (sql.is_sign(position, ",") or _begins_join(sql, position)):
        position = sql.closing.get(position, position) + 1
    return position


def _begins_join(sql: Sql, position: int) -> bool:
    """Returns whether a join begins: LEFT and RIGHT are functions too."""
    word = sql.word(position)
    is_function = word in ("LEFT", "RIGHT") and sql.is_sign(position + 1, "(")
    return word in _JOINS and not is_function
