"""The name of an expression in DataFusion: `sum(t.v)`, `t.v + Int64(1)`.

A cast and parentheses do not show. A column has its relation in front, if the expression is not the
column alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.sql.datafusion.meaning.call_names import CallName, folded
from penstock.sql.datafusion.meaning.literal_names import (
    UnknownName,
    interval_name,
    literal_name,
    number_name,
    text_name,
)
from penstock.sql.text.clauses import Part
from penstock.sql.text.sql import Sql

_WORDS = frozenset({
    "AND", "OR", "NOT", "IS", "LIKE", "ILIKE", "BETWEEN", "DISTINCT", "FROM", "UNKNOWN", "CASE",
    "WHEN", "THEN", "ELSE", "END", "IN",
})  # fmt: skip
"""The words of operators, which are written in upper case."""
_LOGIC = frozenset({"AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE"})
_UNKNOWN = frozenset({"SELECT", "WITH", "EXISTS", "SIMILAR", "ANY", "SOME", "ALL", "LATERAL",
                      "ESCAPE", "MAP", "RLIKE", "REGEXP"})  # fmt: skip
_SIGNS = {"<>": "!=", "==": "=", "^": "BIT_XOR"}
_COMPOSED = ("!~*", "!~", "~*", "<=", ">=", "<>", "!=", "<<", ">>", "||")
_JSON = ("->", "->>", "?")
_TYPE_WORDS = ("PRECISION", "UNSIGNED", "VARYING")
_WITHOUT_PARENTHESES = ("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP")


class ExpressionName:
    """The names of the expressions of a query.

    `owners` are the names of its relations as expressions write them; `qualifier` is that of the
    only relation, empty without one.
    """

    def __init__(self, sql: Sql, owners: Mapping[str, str], qualifier: str) -> None:
        self._sql, self._owners, self._qualifier = sql, owners, qualifier
        self._calls = CallName(sql, self.of)

    def of(self, part: Part) -> str:
        """Returns the name of an expression. Raises UnknownName."""
        words: list[str] = []
        position, last = part
        while position < last:
            text, position = self._next(position, last, words)
            if text:
                words.append(text)
        if not words:
            raise UnknownName
        return " ".join(words)

    def column(self, part: Part) -> str:
        """Returns the name of a column with the fields of structs: `t.window[start]`."""
        names = [folded(token) for token in self._sql.tokens[part[0] : part[1] : 2]]
        if len(names) > 1 and names[0] in self._owners:
            owner, names = self._owners[names[0]], names[1:]
        else:
            owner = self._qualifier
        fields = "".join(f"[{name}]" for name in names[1:])
        return f"{owner}.{names[0]}{fields}" if owner else f"{names[0]}{fields}"

    def _next(self, position: int, last: int, words: list[str]) -> tuple[str, int]:
        """Returns the next operator or operand, and the token after it."""
        sql, token = self._sql, self._sql[position]
        if token.word in _UNKNOWN:
            raise UnknownName
        if token.word == "IN" and sql.is_sign(position + 1, "("):
            closing = sql.closing[position + 1]
            items = [self.of(item) for item in sql.split(position + 2, closing, ",")]
            return f"IN {', '.join(items)}", closing + 1
        if token.word in _WORDS or (token.word in ("TRUE", "FALSE") and "IS" in words[-2:]):
            return token.word, position + 1
        if sql.words(position, "AT", "TIME", "ZONE"):
            return "", self._operand(position + 3)[1]
        if token.kind != "sign" or token.value in ("(", "[", "."):
            return self._operand(position)
        if token.is_sign("=") and sql.word(position + 1) in ("ANY", "SOME"):
            return self._contained(position + 2, words)
        if token.value in _JSON:
            return self._json(position, words)
        if token.value in "+-" and (not words or _is_operator(words[-1])):
            return self._signed(position, last)
        sign = next((each for each in _COMPOSED if self._is_composed(position, each)), token.value)
        if sign in (":", "{", "}", ",", ")", "]", "."):
            raise UnknownName
        return _SIGNS.get(sign, sign), position + self._tokens_of(position, sign)

    def _is_composed(self, position: int, sign: str) -> bool:
        start = self._sql[position].start
        return self._sql.text.startswith(sign, start)

    def _tokens_of(self, position: int, sign: str) -> int:
        end, count = self._sql[position].start + len(sign), 0
        while position + count < len(self._sql) and self._sql[position + count].end <= end:
            count += 1
        return max(count, 1)

    def _signed(self, position: int, last: int) -> tuple[str, int]:
        sql = self._sql
        if sql.is_sign(position, "+"):
            return self._operand(position + 1)
        after = position + 1
        if after < last and sql[after].kind == "number" and not sql.is_sign(after + 1, "::"):
            return number_name(sql[after].value, "-"), after + 1
        if sql.is_sign(after, "-"):
            text, end = self._signed(after, last)
        else:
            text, end = self._operand(after)
        return f"(- {text})", end

    def _contained(self, opening: int, words: list[str]) -> tuple[str, int]:
        """Returns `array_has(b,a)` for `a = ANY (b)`, in place of the words of `a`."""
        closing = self._sql.closing.get(opening)
        if closing is None:
            raise UnknownName
        first = max((index + 1 for index, word in enumerate(words) if word in _LOGIC), default=0)
        value = " ".join(words[first:])
        del words[first:]
        return f"array_has({self.of((opening + 1, closing))},{value})", closing + 1

    def _json(self, position: int, words: list[str]) -> tuple[str, int]:
        """Returns a JSON operator with its key as it is written."""
        key = position + 1
        token = self._sql[key] if key < len(self._sql) else None
        if token is None or len(words) != 1:
            raise UnknownName
        sign = self._sql[position].value
        if token.kind == "string":
            return f"{sign} '{token.value}'", key + 1
        if token.kind == "number":
            return f"{sign} {token.value}", key + 1
        raise UnknownName

    def _operand(self, position: int) -> tuple[str, int]:
        """Returns an operand with what follows it: `::TYPE`, `[1]`, clauses of a call."""
        sql = self._sql
        if position >= len(sql) or sql[position].word in _UNKNOWN:
            raise UnknownName
        text, end = self._primary(position)
        while end < len(sql):
            if sql.is_sign(end, "::"):
                end = self._after_type(end + 1)
            elif sql.is_sign(end, "["):
                text, end = f"{text}[{self._subscript(end)}]", sql.closing[end] + 1
            elif sql.is_sign(end, ".") and end + 1 < len(sql) and sql[end + 1].is_name:
                text, end = f"{text}[{folded(sql[end + 1])}]", end + 2
            else:
                break
        return text, end

    def _primary(self, position: int) -> tuple[str, int]:
        sql, token = self._sql, self._sql[position]
        if token.is_sign("("):
            return self._in_parentheses(position)
        if token.is_sign("[") or (token.word == "ARRAY" and sql.is_sign(position + 1, "[")):
            opening = position + (token.word == "ARRAY")
            return f"make_array({self._arguments(opening)})", sql.closing[opening] + 1
        if token.is_sign(".") and position + 1 < len(sql) and sql[position + 1].kind == "number":
            return number_name(f"0.{sql[position + 1].value}"), position + 2
        if token.word == "INTERVAL":
            return self._interval(position)
        if token.word in ("TIMESTAMP", "DATE") and position + 1 < len(sql):
            typed = sql[position + 1]
            if typed.kind == "string":
                return text_name(typed.value), position + 2
        if token.word in _WITHOUT_PARENTHESES and not sql.is_sign(position + 1, "("):
            return f"{token.value.lower()}()", position + 1
        literal = literal_name(token)
        if literal is not None:
            return literal, position + 1
        if not token.is_name:
            raise UnknownName
        if sql.is_sign(position + 1, "("):
            return self._calls.at(position)
        end = position + 1
        while sql.is_sign(end, ".") and end + 1 < len(sql) and sql[end + 1].is_name:
            end += 2
        return self.column((position, end)), end

    def _in_parentheses(self, position: int) -> tuple[str, int]:
        closing = self._sql.closing.get(position)
        if closing is None:
            raise UnknownName
        if len([*self._sql.split(position + 1, closing, ",")]) > 1:
            raise UnknownName
        return self.of((position + 1, closing)), closing + 1

    def _interval(self, position: int) -> tuple[str, int]:
        sql = self._sql
        if position + 1 >= len(sql) or sql[position + 1].kind != "string":
            raise UnknownName
        text, end = sql[position + 1].value, position + 2
        if sql.word(end).removesuffix("S") in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE",
                                               "SECOND"):  # fmt: skip
            text, end = f"{text} {sql[end].value}", end + 1
        name = interval_name(text)
        if name is None:
            raise UnknownName
        return name, end

    def _subscript(self, opening: int) -> str:
        sql, closing = self._sql, self._sql.closing[opening]
        if closing == opening + 2 and sql[opening + 1].kind == "string":
            return sql[opening + 1].value
        bounds = [*sql.split(opening + 1, closing, ":")]
        if not bounds or len(bounds) > 3:
            raise UnknownName
        names = [self.of(bound) for bound in bounds]
        return ":".join([*names, "Int64(1)"] if len(names) == 2 else names)

    def _after_type(self, position: int) -> int:
        """Returns the token after a type: `INT`, `DECIMAL(10, 2)`, `DOUBLE PRECISION`."""
        sql, position = self._sql, position + 1
        while sql.word(position) in _TYPE_WORDS:
            position += 1
        if sql.is_sign(position, "("):
            position = sql.closing[position] + 1
        while sql.is_sign(position, "[") and sql.closing.get(position) == position + 1:
            position += 2
        return position

    def _arguments(self, opening: int) -> str:
        closing = self._sql.closing[opening]
        parts = self._sql.split(opening + 1, closing, ",")
        return ",".join(self.of(part) for part in parts)


def _is_operator(word: str) -> bool:
    return word in _WORDS or not any(character.isalnum() or character in ')"' for character in word)
