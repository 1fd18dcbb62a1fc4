"""What a SQL text reads, and what it has to remember between batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import sqlglot
from sqlglot import exp

_STATEFUL = (
    exp.AggFunc, exp.Group, exp.Distinct, exp.Window, exp.Limit, exp.Order, exp.Except,
    exp.Intersect, exp.Qualify, exp.Offset,
)  # fmt: skip
_RANDOM = re.compile(
    r"\b(rand|randn|random|uuid|shuffle|now|current_timestamp|current_date|current_time|"
    r"localtimestamp|monotonically_increasing_id|input_file_name|spark_partition_id)\b",
    re.IGNORECASE,
)
_MOMENT = re.compile(
    r"\b(?:timestamp|timestamp_ltz|timestamp_ntz|date)\s*(['\"])\s*(?:now|today|tomorrow|yesterday)\b",
    re.IGNORECASE,
)
_WINDOW = re.compile(r"(?<!`)\bwindow\b(?!\s+\w+\s+AS\s*\()", re.IGNORECASE)
"""The function and the column of that name, which sqlglot takes for the clause."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Facts:
    """Facts of one SQL query. `tree` is None where sqlglot cannot read it; Spark then judges.

    Without a tree nothing is guessed silently: every known name that occurs counts as read, and
    the query counts as stateful.
    """

    text: str
    tree: exp.Expr | None

    def relations(self, known: frozenset[str]) -> frozenset[str]:
        """The names in `known` that the text reads (case does not matter), and unknown ones."""
        canonical = {name.lower(): name for name in known}
        if self.tree is None:
            words = {word.lower() for word in _WORD.findall(self.text)}
            return frozenset(canonical[word] for word in words if word in canonical)
        names = (table.name for table in self._tables(self.tree))
        return frozenset(canonical.get(name.lower(), name) for name in names)

    def stateful(self, streaming: frozenset[str]) -> bool:
        """Whether the query remembers rows of the `streaming` relations between batches."""
        if self.tree is None:
            return True
        streams = {name.lower() for name in streaming}
        if any(self._reads(scope, streams) > 0 for scope in self._remembering()):
            return True
        return any(self._joins_streams(select, streams) for select in self._selects())

    def remembers(self, streaming: frozenset[str]) -> tuple[str, ...]:
        """What a stateful query remembers of the `streaming` relations, in words."""
        if self.tree is None:
            return ()
        streams = {name.lower() for name in streaming}
        found = []
        if any(self._joins_streams(select, streams) for select in self._selects()):
            found.append("rows of both sides of a join")
        if self.tree.find(exp.AggFunc, exp.Group):
            found.append("groups")
        if self.tree.find(exp.Distinct):
            found.append("distinct rows")
        return tuple(found)

    @cached_property
    def deterministic(self) -> bool:
        """Whether the same rows always give the same result."""
        return deterministic(self.text)

    @cached_property
    def _ctes(self) -> dict[str, exp.Expr]:
        assert self.tree is not None
        return {cte.alias.lower(): cte.this for cte in self.tree.find_all(exp.CTE)}

    def _tables(self, tree: exp.Expr) -> Iterator[exp.Table]:
        for table in tree.find_all(exp.Table):
            if table.name and table.name.lower() not in self._ctes:
                yield table

    def _selects(self) -> Iterator[exp.Select]:
        assert self.tree is not None
        yield from self.tree.find_all(exp.Select)

    def _remembering(self) -> Iterator[exp.Expr]:
        """The queries in which something aggregates, sorts or compares rows with others."""
        assert self.tree is not None
        for node in self.tree.find_all(*_STATEFUL):
            scope = node.find_ancestor(exp.Select, exp.SetOperation)
            yield scope if scope is not None else self.tree
        for union in self.tree.find_all(exp.Union):
            if union.args.get("distinct"):
                yield union

    def _reads(self, tree: exp.Expr, streams: set[str], seen: frozenset[str] = frozenset()) -> int:
        """How many times `tree` reads one of the streams, through common table expressions."""
        count = 0
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            if name in self._ctes and name not in seen:
                count += self._reads(self._ctes[name], streams, seen | {name})
            elif name in streams:
                count += 1
        return count

    def _joins_streams(self, select: exp.Select, streams: set[str]) -> bool:
        if not select.args.get("joins"):
            return False
        source = select.args.get("from_") or select.args.get("from")
        sides = [source, *select.args["joins"]]
        return sum(1 for side in sides if side is not None and self._reads(side, streams)) > 1


def deterministic(*texts: str) -> bool:
    """Whether queries or expressions always give the same result for the same rows."""
    return not any(_RANDOM.search(text) or momentary(text) for text in texts)


def momentary(text: str) -> bool:
    """Whether it says `TIMESTAMP 'now'` or the like, of which Spark's plan has only the value."""
    return _MOMENT.search(text) is not None


def read(text: str) -> Facts:
    """The facts of a SQL text. Never raises: Spark tells what is wrong with it."""
    logger = sqlglot.parser.logger
    level = logger.level
    logger.setLevel("CRITICAL")
    try:
        tree = sqlglot.parse_one(_WINDOW.sub("`window`", text), dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return Facts(text, None)
    finally:
        logger.setLevel(level)
    if not isinstance(tree, exp.Query):
        return Facts(text, None)
    return Facts(text, tree)
