"""A grammar of queries over windows and joins of streams, each in Penstock's SQL and in DuckDB's.

DuckDB reads the tables `a` and `b` with the columns `ts` (milliseconds), `late` (the watermark that
the row is compared with) and, for sessions, the table `sessions` with their start and end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

SECOND = 1000
JOINS = ("INNER", "LEFT", "RIGHT", "FULL")
_START, _END = "unix_millis(window.start)", "unix_millis(window.end)"


@dataclass(frozen=True)
class Sessions:
    """The rows that a query divides into sessions: a query for DuckDB, keys and gap."""

    rows: str
    keys: Sequence[str]
    gap: int


@dataclass(frozen=True)
class Query:
    """A query for Penstock and the query for DuckDB with the same answer."""

    shape: str
    sql: str
    answer: str
    reads: tuple[str, ...]
    by_set: bool = True
    """Whether each set of rows has an answer of its own."""
    sessions: Sessions | None = None


@dataclass(frozen=True)
class Window:
    """A window of event time. Times are in milliseconds. `unit` is that of the calendar."""

    kind: str
    width: int
    slide: int
    unit: str = ""

    @property
    def call(self) -> str:
        if self.kind == "calendar":
            return f"calendar_window(ts, '{self.unit}')"
        width, slide = _interval(self.width), _interval(self.slide)
        return f"hop({slide}, {width})" if self.kind == "hop" else f"{self.kind}({width})"

    def divide(self, rows: str) -> str:
        """Returns DuckDB's query of rows in each of their windows that are not over."""
        if self.kind == "session":
            return "SELECT * FROM sessions"
        if self.kind == "calendar":
            start = f"date_trunc('{self.unit}', make_timestamp(ts * 1000))"
            return (
                f"SELECT * FROM (SELECT *, epoch_ms({start}) AS s, "
                f"epoch_ms({start} + INTERVAL 1 {self.unit}) AS e FROM ({rows})) WHERE e > late"
            )
        count = -(-self.width // self.slide)
        return (
            f"SELECT *, (ts // {self.slide} - number) * {self.slide} AS s, s + {self.width} AS e "
            f"FROM ({rows}), range({count}) numbers(number) "
            f"WHERE ts < (ts // {self.slide} - number) * {self.slide} + {self.width} "
            f"AND (ts // {self.slide} - number) * {self.slide} + {self.width} > late"
        )


def _interval(milliseconds: int) -> str:
    return f"INTERVAL '{milliseconds // SECOND} seconds'"


def _equal(left: str, right: str, keys: Sequence[str], kind: str) -> str:
    """Returns the equality of keys. A full join requires keys that are not null on one side."""
    if kind == "FULL":
        return " AND ".join(f"{left}.{key} = coalesce({right}.{key}, -1)" for key in keys)
    return " AND ".join(f"{left}.{key} = {right}.{key}" for key in keys)


@dataclass(frozen=True)
class Grouped:
    """An aggregate by window: `sql` has the column `window`, `answer` has `s` and `e`."""

    sql: str
    answer: str
    keys: Sequence[str]
    window: Window
    sessions: Sessions | None


class Grammar:
    """Random queries. Each method returns one of its shape."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def tumbling(self) -> Window:
        width = self.chance.choice((3, 5, 10, 20)) * SECOND
        return Window("tumble", width, width)

    def hopping(self) -> Window:
        slide, width = self.chance.choice(((5, 10), (4, 10), (3, 20), (2, 10), (7, 10)))
        return Window("hop", width * SECOND, slide * SECOND)

    def calendar(self) -> Window:
        return Window("calendar", 0, 0, self.chance.choice(("day", "month", "quarter", "year")))

    def session(self) -> Window:
        gap = self.chance.choice((1, 2, 4)) * SECOND
        return Window("session", gap, gap)

    def _condition(self) -> str:
        return self.chance.choice((
            "true", "x IS NOT NULL", "x % 2 = 1", "k <> 'u'", "x > 2 OR k IS NULL",
            "k IN ('u', 'w')", "NOT (x BETWEEN 2 AND 4)",
        ))  # fmt: skip

    def _aggregates(self, least: int = 1) -> str:
        every = (
            "count(x) AS c", "sum(x) AS t", "min(x) AS lo", "max(x) AS hi", "avg(x) AS m",
            "count(DISTINCT x) AS d", "sum(x) FILTER (WHERE k = 'u') AS u", "max(k) AS y",
            "bool_or(x > 6) AS many", "count(*) FILTER (WHERE x < 3) AS few",
            "sum(x * 2 + id) AS i", "stddev_pop(x) AS sd", "1 + max(x) - min(x) AS r",
        )  # fmt: skip
        chosen = self.chance.sample(every, self.chance.randrange(least, 5))
        return ", ".join(("count(*) AS n", *chosen))

    def _having(self) -> str:
        return self.chance.choice(("", "", " HAVING count(*) > 1", " HAVING max(x) < 9"))

    def grouped(
        self, window: Window, keys: Sequence[str], source: str = "a", least: int = 1
    ) -> Grouped:
        """Returns an aggregate by window and keys over a stream or the union of both."""
        union = (
            "(SELECT id, g, k, x, ts{late} FROM a UNION ALL SELECT id, g, k, x, ts{late} FROM b)"
        )
        streams = union if source == "union" else source
        where, having = self._condition(), self._having()
        aggregates = self._aggregates(least)
        names = "".join(f"{key}, " for key in keys)
        rows = f"SELECT * FROM {streams.format(late=', late')} WHERE ({where}) AND ts IS NOT NULL"
        return Grouped(
            f"SELECT {names}{window.call} AS window, {aggregates} "
            f"FROM {streams.format(late='')} WHERE {where} GROUP BY {names}window{having}",
            f"SELECT {names}s, e, {aggregates} FROM ({window.divide(rows)}) "
            f"GROUP BY {names}s, e{having}",
            keys,
            window,
            Sessions(rows, keys, window.width) if window.kind == "session" else None,
        )

    def windowed(self, shape: str, window: Window, keys: Sequence[str], source: str) -> Query:
        """Returns an aggregate by window."""
        inner = self.grouped(window, keys, source)
        return Query(
            shape,
            f"SELECT *, {_START} AS s, {_END} AS e FROM ({inner.sql})",
            f"SELECT * EXCLUDE (s, e), s, e FROM ({inner.answer})",
            ("a", "b") if source == "union" else (source,),
            "g" in keys,
            inner.sessions,
        )

    def top(self, window: Window, function: str) -> Query:
        """Returns the first rows of each window by rank."""
        inner = self.grouped(window, ("g", "k"))
        order = "n DESC, k NULLS LAST" if function == "row_number" else "n DESC"
        rank = f"{function}() OVER (PARTITION BY {{}}, g ORDER BY {order}) AS place"
        last = self.chance.randrange(1, 4)
        return Query(
            f"top by {function}",
            f"SELECT *, {_START} AS s FROM (SELECT *, {rank.format('window')} FROM ({inner.sql})) "
            f"WHERE place <= {last}",
            f"SELECT * EXCLUDE (e) FROM (SELECT *, {rank.format('s, e')} FROM ({inner.answer})) "
            f"WHERE place <= {last}",
            ("a",),
            sessions=inner.sessions,
        )

    def nested(self, shape: str, window: Window) -> Query:
        """Returns an aggregate by windows of windows."""
        inner = self.grouped(window, ("g", "k"))
        width = self.chance.choice((20, 60)) * SECOND
        return Query(
            shape,
            f"SELECT g, {_START} AS s, windows, most FROM (SELECT g, "
            f"tumble({_interval(width)}) AS window, count(*) AS windows, max(n) AS most "
            f"FROM ({inner.sql}) GROUP BY g, window)",
            f"SELECT g, (e - 1) // {width} * {width} AS s, count(*) AS windows, max(n) AS most "
            f"FROM ({inner.answer}) GROUP BY g, (e - 1) // {width}",
            ("a",),
            sessions=inner.sessions,
        )

    def joined_windows(self, kind: str, window: Window) -> Query:
        """Returns a join of aggregates of both streams in the same window."""
        keys = ("g",) if kind == "FULL" else self.chance.choice((("g",), ("g", "k")))
        left, right = self.grouped(window, keys, "a"), self.grouped(window, keys, "b")
        condition = _equal("l", "r", keys, kind)
        if kind == "INNER" and self.chance.random() < 0.5:
            condition += " AND l.n <= r.n"
        stated = self.chance.choice((
            "", " AND l.window = r.window", " AND l.window.start = r.window.start",
            " AND r.window.end = l.window.end",
        ))  # fmt: skip
        columns = ", ".join(f"{side}.{key} AS {side}_{key}" for side in "lr" for key in keys)
        columns += ", l.n AS ln, r.n AS rn"
        start = "coalesce(l.window.start, r.window.start)"
        return Query(
            f"{kind.lower()} join of {window.kind}s",
            f"SELECT {columns}, unix_millis({start}) AS s "
            f"FROM ({left.sql}) l {kind} JOIN ({right.sql}) r ON {condition}{stated}",
            f"SELECT {columns}, coalesce(l.s, r.s) AS s "
            f"FROM ({left.answer}) l {kind} JOIN ({right.answer}) r ON {condition} AND l.s = r.s",
            ("a", "b"),
        )

    def joined_rows(self, kind: str) -> Query:
        """Returns a join of rows whose event times are near each other."""
        before, after = (self.chance.choice((0, 1, 3, 8)) * SECOND for _ in range(2))
        keys = ("g",) if kind == "FULL" else self.chance.choice((("g",), ("g", "k")))
        condition = _equal("a", "b", keys, kind)
        if kind == "INNER" and self.chance.random() < 0.5:
            condition += " AND a.x < b.x"
        near = "b.ts BETWEEN a.ts - {before} AND a.ts + {after}"
        if self.chance.random() < 0.5:
            near, after = "b.ts >= a.ts - {before} AND b.ts < a.ts + {after}", after + SECOND
        in_sql = near.format(before=_interval(before), after=_interval(after))
        in_answer = near.format(before=before, after=after)
        where = {"LEFT": "a.x > 2", "RIGHT": "b.x <> 4", "FULL": "true"}.get(kind, "a.k <> 'u'")
        live = "(SELECT * FROM {} WHERE ts IS NULL OR ts > late)"
        return Query(
            f"{kind.lower()} interval join",
            f"SELECT a.g AS lg, b.g AS rg, a.id AS i, b.id AS j FROM a {kind} JOIN b "
            f"ON {condition} AND {in_sql} WHERE {where}",
            f"SELECT a.g AS lg, b.g AS rg, a.id AS i, b.id AS j FROM {live.format('a')} a "
            f"{kind} JOIN {live.format('b')} b ON {condition} AND {in_answer} "
            f"WHERE coalesce(a.ts, b.ts) IS NOT NULL AND {where}",
            ("a", "b"),
        )

    def queries(self, extra: int = 0) -> list[Query]:
        """Returns a query of each shape, and further ones of random shapes."""
        shapes: list[Callable[[], Query]] = [
            lambda: self.windowed("tumble", self.tumbling(), ("g", "k"), "a"),
            lambda: self.windowed("tumble of all keys", self.tumbling(), (), "a"),
            lambda: self.windowed("tumble of a union", self.tumbling(), ("g",), "union"),
            lambda: self.windowed("hop", self.hopping(), ("g", "k"), "a"),
            lambda: self.windowed("hop of few keys", self.hopping(), ("g",), "b"),
            lambda: self.windowed("session", self.session(), ("g", "k"), "a"),
            lambda: self.windowed("session of all keys", self.session(), (), "b"),
            lambda: self.windowed("session of a union", self.session(), ("g",), "union"),
            lambda: self.windowed("tumble of changes", self.tumbling(), ("g", "k"), "c"),
            lambda: self.windowed("hop of changes", self.hopping(), ("g",), "c"),
            lambda: self.windowed("session of changes", self.session(), ("g", "k"), "c"),
            lambda: self.windowed("session of all changes", self.session(), (), "c"),
            lambda: self.windowed("calendar", self.calendar(), ("g", "k"), "a"),
            lambda: self.windowed("calendar of a union", self.calendar(), ("g",), "union"),
            lambda: self.windowed("calendar of changes", self.calendar(), ("g", "k"), "c"),
            lambda: self.top(self.calendar(), "rank"),
            lambda: self.joined_windows("INNER", self.calendar()),
            lambda: self.top(self.tumbling(), "row_number"),
            lambda: self.top(self.hopping(), "rank"),
            lambda: self.nested("tumble of tumbles", self.tumbling()),
            lambda: self.nested("tumble of hops", self.hopping()),
            *(partial(self.joined_windows, kind, self.tumbling()) for kind in JOINS),
            lambda: self.joined_windows(self.chance.choice(JOINS), self.hopping()),
            *(partial(self.joined_rows, kind) for kind in JOINS),
        ]  # fmt: skip
        return [shape() for shape in (*shapes, *self.chance.choices(shapes, k=extra))]
