"""The primary key of the rows of a query: where it is proved."""

from __future__ import annotations

import pytest

from penstock.sql.facts import parse_facts
from penstock.sql.keyed_rows import KeyedRows
from penstock.sql.primary_keys import computed_rows, keyed_rows

KEYED = KeyedRows(("id", "x", "tags"), ("id",), ("id",), {"id": "INT", "x": "STRING"})
RELATIONS = {
    "u": KEYED,
    "w": KeyedRows.by(["id"]),
    "names": KeyedRows(("id", "name"), ("id",), is_stream=False),
    "other": KeyedRows(is_stream=False),
    "keyless": KeyedRows(),
}


NUMBER = "row_number() OVER (PARTITION BY {} ORDER BY v) AS n"


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        (f"SELECT *, {NUMBER.format('id, x')} FROM u", "id, x, n"),
        (f"SELECT x, {NUMBER.format('u.x')} FROM u", "x, n"),
        (f"SELECT id, {NUMBER.format('x')} FROM u", ""),
        (f"SELECT x, id AS n, {NUMBER.format('x')} FROM u", ""),
        (f"SELECT x, {NUMBER.format('upper(x)')} FROM u", ""),
        (f"SELECT x, explode(tags) AS tag, {NUMBER.format('x')} FROM u", ""),
        ("SELECT x, rank() OVER (PARTITION BY x ORDER BY v) AS n FROM u", ""),
        (f"SELECT a.*, b.x AS y, {NUMBER.format('a.id')} FROM u a JOIN u b ON a.id = b.x", "id, n"),
        (f"SELECT a.*, {NUMBER.format('b.id')} FROM u a JOIN u b ON a.id = b.x", ""),
        (f"SELECT a.*, {NUMBER.format('id')} FROM u a JOIN u b ON a.id = b.x", ""),
        (f"SELECT x FROM (SELECT *, {NUMBER.format('x')} FROM u) WHERE n <= 1", "x"),
        (f"SELECT x AS y FROM (SELECT *, {NUMBER.format('x')} FROM u) WHERE 2 > n", "y"),
        (f"SELECT x FROM (SELECT *, {NUMBER.format('x')} FROM u) q WHERE q.n = 1 AND id > 2", "x"),
        (f"SELECT x FROM (SELECT *, {NUMBER.format('x')} FROM u) WHERE n <= 2", ""),
        (f"SELECT x FROM (SELECT *, {NUMBER.format('x')} FROM u) WHERE n <= 1 OR id > 2", ""),
        (f"SELECT x FROM (SELECT *, {NUMBER.format('x')} FROM u) WHERE n >= 1", ""),
        (f"SELECT x, n FROM (SELECT *, {NUMBER.format('x')} FROM u) WHERE n < 4", "x, n"),
        (f"SELECT id FROM (SELECT *, {NUMBER.format('x')} FROM u) WHERE n <= 1", ""),
        (f"SELECT q.x FROM (SELECT *, {NUMBER.format('x')} FROM u) q JOIN u ON n = 1", ""),
        (f"SELECT x FROM (SELECT *, {NUMBER.format('x')} FROM u) WHERE tags.n = 1", ""),
        (f"SELECT x FROM (SELECT *, {NUMBER.format('x')} FROM u) q WHERE q.tags.n = 1", ""),
        ("SELECT x, row_number() OVER w AS n FROM u WINDOW w AS (PARTITION BY x ORDER BY v)", ""),
        ("SELECT x, row_number() OVER (w) AS n FROM u WINDOW w AS (PARTITION BY x ORDER BY v)", ""),
        (f"WITH q AS (SELECT *, {NUMBER.format('x')} FROM u) SELECT * FROM q", "x, n"),
        (f"SELECT x, n FROM (SELECT x, {NUMBER.format('x')} FROM u) UNION ALL SELECT 1, 2", ""),
    ],
)
def test_row_numbers(sql: str, key: str) -> None:
    assert ", ".join(keyed_rows(parse_facts(sql), RELATIONS).numbered) == key


@pytest.mark.parametrize("relation", ["u", "w"])
@pytest.mark.parametrize(
    ("sql", "key", "origin"),
    [
        ("SELECT * FROM u", "id", "id"),
        ("SELECT *, 1 AS one FROM u WHERE x > 1", "id", "id"),
        ("SELECT u.id, upper(x) AS x FROM u", "id", "id"),
        ("SELECT ID AS Key FROM u", "Key", "Key"),
        ("SELECT a.id AS k FROM u AS a", "k", "k"),
        ("SELECT b.id FROM u AS a", "", ""),
        ("SELECT s.id FROM u", "", ""),
        ("SELECT * EXCEPT (id) FROM u", "", ""),
        ("SELECT *, x AS id FROM u", "", ""),
        ("SELECT x FROM u", "", ""),
        ("SELECT x AS id FROM u", "", ""),
        ("SELECT id % 2 AS id FROM u", "", ""),
        ("SELECT id AS k, id % 2 AS id FROM u", "k", "k"),
        ("SELECT id, x AS id FROM u", "", ""),
        ("SELECT id FROM (SELECT x AS id FROM u)", "", ""),
        ("SELECT k FROM (SELECT id AS k FROM u) q WHERE k > 1", "k", "k"),
        ("WITH v AS (SELECT x AS id FROM u) SELECT id FROM v", "", ""),
        ("WITH v AS (SELECT id AS k FROM u) SELECT * FROM v", "k", "k"),
        ("WITH v AS (SELECT id, x FROM u) SELECT a FROM v AS q(a, b)", "a", "a"),
        ("WITH v AS (SELECT id, x FROM u) SELECT b FROM v AS q(a, b)", "", ""),
        ("SELECT id FROM u UNION ALL SELECT id FROM u", "", ""),
        ("SELECT id FROM u JOIN other USING (id)", "", "id"),
        ("SELECT u.id FROM u LEFT JOIN other ON u.x = other.x", "", "id"),
        ("SELECT u.id FROM u RIGHT JOIN other ON u.x = other.x", "", ""),
        ("SELECT u.id, name FROM u LEFT JOIN names n ON n.id = u.x", "id", "id"),
        ("SELECT u.id, name FROM u LEFT JOIN names n ON n.name = u.x", "", "id"),
        ("SELECT u.id FROM u LEFT SEMI JOIN other ON u.id = other.id", "id", "id"),
        ("SELECT id, explode(tags) AS tag FROM u", "", "id"),
        ("SELECT id, stack(2, x, x) FROM u", "", "id"),
        ("SELECT id, inline_outer(tags) FROM u", "", "id"),
        ("SELECT id, tag FROM u LATERAL VIEW explode(tags) AS tag", "", "id"),
        ("SELECT id FROM u UNPIVOT (v FOR n IN (x, tags))", "", ""),
        ("SELECT /*+ REPARTITION(3) */ id FROM u", "", ""),
        ("SELECT id, row_number() OVER (ORDER BY x) AS r FROM u", "id", "id"),
        ("SELECT TRY_CAST(id AS BIGINT) AS id FROM u", "", ""),
        ("SELECT id FROM", "", ""),
    ],
)
def test_a_key_is_kept_where_it_is_proved(sql: str, key: str, origin: str, relation: str) -> None:
    found = keyed_rows(parse_facts(sql), RELATIONS | {"u": RELATIONS[relation]})
    assert (found.key, found.origin) == ((key,) if key else (), (origin,) if origin else ())


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT CAST(id AS BIGINT) AS id FROM u", ("id",)),
        ("SELECT CAST(CAST(id AS INT) AS STRING) AS k FROM u", ("k",)),
        ("SELECT coalesce(CAST(id AS INT), CAST(raise_error('null') AS INT)) AS k FROM u", ("k",)),
        ("SELECT CAST(id AS SMALLINT) AS id FROM u", ("id",)),
        ("SELECT CAST(CAST(id AS DOUBLE) AS INT) AS id FROM u", ()),
        ("SELECT CAST(x AS INT) AS id, id AS k FROM u", ("k",)),
        ("SELECT CAST(x AS STRING) AS k FROM (SELECT x, count(*) FROM u GROUP BY x)", ("k",)),
        ("SELECT coalesce(id, 0) AS id FROM u", ()),
        ("SELECT a AS id FROM u AS q(a, b, c)", ("id",)),
        ("SELECT b AS id FROM u AS q(a, b, c)", ()),
    ],
)
def test_a_key_is_kept_by_known_columns_and_types(sql: str, key: tuple[str, ...]) -> None:
    assert keyed_rows(parse_facts(sql), RELATIONS).key == key


TYPED = KeyedRows(("id", "x", "w"), types={"id": "INT", "x": "STRING", "w": "DOUBLE"})
JOINED = "FROM u a JOIN typed b ON a.id = b.id"


@pytest.mark.parametrize(
    ("columns", "types"),
    [
        (f"a.id AS k, b.x, w {JOINED}", {"k": "INT", "x": "STRING", "w": "DOUBLE"}),
        (f"b.*, a.x AS y {JOINED}", {"id": "INT", "x": "STRING", "w": "DOUBLE", "y": "STRING"}),
        (f"b.* EXCEPT (w), a.x AS w {JOINED}", {"id": "INT", "x": "STRING", "w": "STRING"}),
        (f"a.*, b.w AS id {JOINED}", {"x": "STRING"}),
        ("id, w FROM u RIGHT JOIN typed USING (id)", {"w": "DOUBLE"}),
        ("* FROM u RIGHT JOIN typed USING (id)", {}),
        ("w FROM typed b JOIN keyless", {}),
        ("b.w FROM typed b JOIN keyless", {"w": "DOUBLE"}),
        ("b.w FROM typed b JOIN u b", {}),
        ("b.w.id AS k FROM typed b JOIN u a", {}),
        (f"b.id, count(*) AS n, max(w) AS m {JOINED} GROUP BY b.id", {"id": "INT", "n": "BIGINT"}),
        (f"row_number() OVER (ORDER BY w) AS n, w + 1 AS m {JOINED}", {"n": "INT"}),
        ("x, date_format(w, 'y') AS d, w > 2 AS e FROM typed", {"x": "STRING", "d": "STRING"}),
        ("*, upper(x) AS w FROM typed", {"id": "INT", "x": "STRING"}),
    ],
)
def test_known_types(columns: str, types: dict[str, str]) -> None:
    relations = RELATIONS | {"typed": TYPED}
    assert keyed_rows(parse_facts(f"SELECT {columns}"), relations).types == types


def test_rows_without_a_key_upstream_have_none() -> None:
    assert keyed_rows(parse_facts("SELECT x FROM keyless"), RELATIONS).origin is None


def test_expressions_over_columns() -> None:
    assert computed_rows(["id AS k", "explode(tags)"], KEYED) == KeyedRows(
        ("k", ""), (), ("k",), {"k": "INT"}, keeps_changes=False
    )


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SELECT x FROM u WHERE x > 2", True),
        ("SELECT x FROM (SELECT * FROM u) q LEFT JOIN other ON q.x = other.x", True),
        ("SELECT x FROM u UNION ALL SELECT x FROM keyless", True),
        ("SELECT x FROM keyless JOIN other USING (id)", False),
        ("SELECT x FROM u, other", False),
        ("SELECT x FROM other JOIN u USING (id)", False),
        ("SELECT x FROM u JOIN (VALUES (1)) v(id) USING (id)", False),
        ("SELECT x FROM u LEFT SEMI JOIN other USING (id)", False),
        ("SELECT x FROM u LEFT ANTI JOIN other USING (id)", False),
        ("SELECT explode(tags) FROM u", False),
        ("SELECT x FROM u LATERAL VIEW explode(tags) AS tag", False),
        ("SELECT x FROM (SELECT * FROM u JOIN other USING (id))", False),
        ("SELECT x FROM u UNION ALL SELECT x FROM u JOIN other USING (id)", False),
        ("SELECT x FROM u TABLESAMPLE (10 PERCENT)", False),
    ],
)
def test_changes_without_a_row(sql: str, kept: bool) -> None:
    assert keyed_rows(parse_facts(sql), RELATIONS).keeps_changes is kept


GROUPS = "SELECT k, sum(x) AS s FROM t GROUP BY k"


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        (GROUPS, ("k",)),
        ("SELECT x % 3 AS r, t.k, count(*) AS n FROM t GROUP BY 1, t.k", ("r", "k")),
        ("SELECT t.k, count(*) AS n FROM t GROUP BY K", ("k",)),
        ("SELECT DISTINCT k, x FROM t", ("k", "x")),
        ("SELECT DISTINCT * FROM t", ()),
        ("SELECT DISTINCT k, x AS k FROM t", ()),
        ("SELECT DISTINCT * FROM u", ("id", "x", "tags")),
        (f"SELECT k AS key, s > 10 AS large FROM ({GROUPS}) WHERE s > 2", ("key",)),
        (f"SELECT * FROM (SELECT q.*, rank() OVER (ORDER BY s) AS r FROM ({GROUPS}) q)", ("k",)),
        (f"WITH g AS ({GROUPS}) SELECT k, s FROM g", ("k",)),
        (f"WITH g AS ({GROUPS}) SELECT * EXCEPT (k) FROM g", ()),
        (f"SELECT upper(k) AS k, s FROM ({GROUPS})", ()),
        (f"SELECT a, b FROM ({GROUPS}) AS g(a, b)", ("a",)),
        (f"SELECT b FROM ({GROUPS}) AS g(a, b)", ()),
        (
            "WITH g AS (SELECT k, count(*) FROM t GROUP BY k) SELECT a FROM g AS q(a, b)",
            ("a",),
        ),
        ("WITH g AS (SELECT id, x, id FROM u) SELECT a FROM g AS q(a, b, c)", ()),
        (f"SELECT max(s) AS m FROM ({GROUPS})", ()),
        (f"SELECT g.k FROM ({GROUPS}) g JOIN u ON g.k = u.k", ()),
        (f"SELECT k, explode(array(s, 1)) FROM ({GROUPS})", ()),
        (f"SELECT * FROM ({GROUPS}) LATERAL VIEW explode(array(s, 1)) AS e", ()),
        (f"{GROUPS} UNION ALL {GROUPS}", ()),
        ("SELECT upper(k) AS k, count(*) AS n FROM t GROUP BY k", ()),
        ("SELECT k, count(*) AS n FROM t GROUP BY ROLLUP (k)", ()),
        ("SELECT k, explode(array(1, 2)) AS e, count(*) AS n FROM t GROUP BY k", ()),
        ("SELECT x AS k, count(*) AS n FROM t GROUP BY k, x", ()),
        ("SELECT x AS k, count(*) AS n FROM names GROUP BY k, x", ("k",)),
        ("SELECT id % 2 AS part, count(*) AS n FROM t GROUP BY part", ("part",)),
        ("SELECT x AS id, count(*) AS n FROM u GROUP BY id", ()),
        ("SELECT x AS k, k AS x, count(*) AS n FROM t GROUP BY k, x", ("x", "k")),
        ("SELECT k, k AS other, count(*) AS n FROM t GROUP BY k", ("k",)),
        ("SELECT k, max(x) AS k FROM t GROUP BY k", ()),
        ("SELECT *, count(*) AS n FROM t GROUP BY 1", ()),
        ("SELECT k FROM t", ()),
    ],
)
def test_groups_are_a_key(sql: str, columns: tuple[str, ...]) -> None:
    relations = {"t": KeyedRows(), "u": KEYED, "names": KeyedRows(("x", "y"))}
    assert keyed_rows(parse_facts(sql), relations).key == columns
