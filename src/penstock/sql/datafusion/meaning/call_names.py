"""The name of a call in DataFusion: `sum(DISTINCT t.v) FILTER (WHERE t.v > Int64(1))`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.sql.datafusion.meaning.literal_names import UnknownName, text_name
from penstock.sql.text.clauses import Part
from penstock.sql.text.sql import Sql
from penstock.sql.text.tokens import Token

_TRIMS = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_RENAMED = {"trim": "btrim", "substring": "substr", "explode": "UNNEST", "unnest": "UNNEST"}


class CallName:
    """The names of the calls of a query. `of` returns the name of an expression."""

    def __init__(self, sql: Sql, of: Callable[[Part], str]) -> None:
        self._sql, self._of = sql, of

    def at(self, position: int) -> tuple[str, int]:
        """Returns the call at a token, and the token after it. Raises UnknownName."""
        sql, opening = self._sql, position + 1
        name, closing = folded(sql[position]), sql.closing.get(opening)
        if closing is None:
            raise UnknownName
        end = closing + 1
        if name in ("cast", "try_cast"):
            words = [i for i in range(opening + 1, closing) if sql.word(i) == "AS"
                     and sql.enclosing(i) == opening]  # fmt: skip
            if len(words) != 1:
                raise UnknownName
            return self._of((opening + 1, words[0])), end
        special = self._special(name, opening, closing)
        if special is not None:
            return special, end
        text = f"{_RENAMED.get(name, name)}({self._inside(opening, closing)})"
        text += self._order((opening + 1, closing), " ORDER BY [{}]", opening)
        return self._clauses(text, end)

    def _special(self, name: str, opening: int, closing: int) -> str | None:
        """Returns a call with words between its arguments; None for another one."""
        sql = self._sql
        words = {
            sql.word(index): index
            for index in range(opening + 1, closing)
            if sql.enclosing(index) == opening
        }
        inner = opening + 1
        if name == "extract" and "FROM" in words:
            field = sql[inner].value.upper() if sql[inner].kind == "word" else None
            if field is None:
                raise UnknownName
            return f"date_part({text_name(field)},{self._of((words['FROM'] + 1, closing))})"
        if name == "position" and "IN" in words:
            text = self._of((words["IN"] + 1, closing))
            return f"strpos({text},{self._of((inner, words['IN']))})"
        if name == "trim" and "FROM" in words:
            function = _TRIMS.get(sql.word(inner), "btrim")
            first = inner + (sql.word(inner) in _TRIMS)
            text = self._of((words["FROM"] + 1, closing))
            if first == words["FROM"]:
                return f"{function}({text})"
            return f"{function}({text},{self._of((first, words['FROM']))})"
        if name in ("substring", "substr", "overlay") and {"FROM", "FOR", "PLACING"} & {*words}:
            if name != "overlay" and "FROM" not in words:
                raise UnknownName
            cuts = sorted(words[word] for word in ("PLACING", "FROM", "FOR") if word in words)
            starts, ends = [inner, *(cut + 1 for cut in cuts)], [*cuts, closing]
            parts = ",".join(self._of(part) for part in zip(starts, ends, strict=True))
            return f"{_RENAMED.get(name, name)}({parts})"
        return None

    def _inside(self, opening: int, closing: int) -> str:
        """Returns the arguments of a call: all of them, without ORDER BY."""
        sql, first = self._sql, opening + 1
        prefix = ""
        if sql.word(first) == "DISTINCT":
            prefix, first = "DISTINCT ", first + 1
        last = next(self._words((first, closing), "ORDER", opening), closing)
        if last == first + 1 and sql.is_sign(first, "*"):
            return f"{prefix}*"
        return prefix + ",".join(self._of(part) for part in sql.split(first, last, ","))

    def _words(self, part: Part, word: str, opening: int) -> Iterator[int]:
        sql = self._sql
        return (i for i in range(*part) if sql.word(i) == word and sql.enclosing(i) == opening)

    def _order(self, part: Part, form: str, opening: int) -> str:
        """Returns the keys of ORDER BY in a part; empty without them."""
        first = next(self._words(part, "ORDER", opening), None)
        if first is None:
            return ""
        keys = [self._key(key) for key in self._sql.split(first + 2, part[1], ",")]
        return form.format(", ".join(keys))

    def _key(self, part: Part) -> str:
        sql, (first, last) = self._sql, part
        nulls = ""
        if sql.word(last - 2) == "NULLS":
            nulls, last = sql.word(last - 1), last - 2
        order = sql.word(last - 1) if sql.word(last - 1) in ("ASC", "DESC") else ""
        last -= bool(order)
        nulls = nulls or ("FIRST" if order == "DESC" else "LAST")
        return f"{self._of((first, last))} {order or 'ASC'} NULLS {nulls}"

    def _clauses(self, text: str, end: int) -> tuple[str, int]:
        """Returns a call with FILTER, WITHIN GROUP, IGNORE NULLS and OVER, and the token after."""
        sql = self._sql
        while end < len(sql):
            closing = sql.closing.get(end + 1, end)
            if sql.word(end) == "FILTER" and closing > end:
                text += f" FILTER (WHERE {self._of((end + 3, closing))})"
                end = closing + 1
            elif sql.words(end, "WITHIN", "GROUP") and sql.is_sign(end + 2, "("):
                closing = sql.closing[end + 2]
                text += self._order((end + 3, closing), " WITHIN GROUP [{}]", end + 2)
                end = closing + 1
            elif sql.word(end) in ("IGNORE", "RESPECT") and sql.word(end + 1) == "NULLS":
                text, end = f"{text} {sql.word(end)} NULLS", end + 2
            elif sql.word(end) == "OVER":
                if closing <= end:
                    raise UnknownName
                text, end = f"{text}{self._window(end + 1, closing)}", closing + 1
            else:
                break
        return text, end

    def _window(self, opening: int, closing: int) -> str:
        sql = self._sql
        frame = next(
            (i for i in range(opening + 1, closing) if sql.word(i) in ("ROWS", "RANGE", "GROUPS")),
            closing,
        )
        order = next(self._words((opening + 1, frame), "ORDER", opening), frame)
        text = ""
        if sql.word(opening + 1) == "PARTITION":
            keys = [self._of(key) for key in sql.split(opening + 3, order, ",")]
            text += f" PARTITION BY [{', '.join(keys)}]"
        text += self._order((opening + 1, frame), " ORDER BY [{}]", opening)
        if frame < closing:
            words = [token.value.upper() for token in sql.tokens[frame:closing]]
            if words[1] != "BETWEEN":
                words = [words[0], "BETWEEN", *words[1:], "AND", "CURRENT", "ROW"]
            return f"{text} {' '.join(words)}"
        if order < frame:
            return f"{text} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        return f"{text} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def folded(token: Token) -> str:
    """Returns a name: in lower case, unless it is in quotes."""
    return token.value if token.kind == "name" else token.value.lower()
