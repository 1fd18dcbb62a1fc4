"""Queries of the catalog of PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

COLUMNS = """
SELECT a.attname, a.atttypid::int8, a.atttypmod,
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
FROM pg_attribute a
WHERE a.attrelid = to_regclass(\0) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
"""The columns of a table: name, type, modifier, and whether a row requires a value."""
_PARTS = """
SELECT 1 AS place, t.typbasetype AS type, t.typtypmod AS modifier WHERE t.typtype = 'd'
UNION ALL SELECT 1, t.typelem, r.modifier
FROM pg_type item WHERE item.oid = t.typelem AND item.typarray = t.oid AND item.typdelim = ','
UNION ALL SELECT a.attnum, a.atttypid, a.atttypmod FROM pg_attribute a
WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT 1, g.rngsubtype, -1
FROM pg_range g WHERE t.oid IN (g.rngtypid, (to_jsonb(g) ->> 'rngmultitypid')::oid)
"""
STRUCTURES = f"""
WITH RECURSIVE r (owner, owner_modifier, place, type, modifier) AS (
    SELECT 0::oid, -1, 0, * FROM unnest(\0::oid[], \0::int[])
    UNION
    SELECT r.type, r.modifier, part.*
    FROM r JOIN pg_type t ON t.oid = r.type, LATERAL ({_PARTS}) part
)
SELECT r.owner::int8, r.owner_modifier, r.type::int8, r.modifier, format_type(r.type, r.modifier),
       CASE t.typtype WHEN 'd' THEN 'domain' WHEN 'c' THEN 'row' WHEN 'r' THEN 'range'
            WHEN 'm' THEN 'range' ELSE 'plain' END,
       CASE WHEN r.type = 'money'::regtype THEN 0::money::text END
FROM r JOIN pg_type t ON t.oid = r.type
ORDER BY r.place
"""
"""Types and their parts: type and modifier of the owner, type, modifier, name, kind, zero of money.

A part that has several owners has a row for each of them. With a subquery for the parts of each
type the estimate of the costs would be so high that the server compiles the query for seconds.
"""
KEYS = """
SELECT i.indisprimary, array_to_json(array(
    SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE k.place <= i.indnkeyatts ORDER BY k.place))::text
FROM pg_index i
WHERE i.indrelid = to_regclass(\0) AND i.indisunique AND i.indpred IS NULL
  AND i.indexprs IS NULL AND i.indisvalid
ORDER BY i.indisprimary DESC, i.indexrelid
"""
"""The unique keys of a table, the primary key first."""
OPEN_TRANSACTIONS = """
SELECT l.virtualxid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted
  AND a.datname = current_database() AND l.pid <> pg_backend_pid()
"""
"""The open transactions of others in the database."""
WRITERS = """
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND mode IN ('RowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock',
      'ShareRowExclusiveLock') AND pid <> pg_backend_pid() AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation IN (SELECT \0::regclass UNION ALL SELECT relid FROM pg_partition_tree(\0::regclass))
"""
"""The open transactions of others that write to a table or its partitions."""
TABLES = """
SELECT nullif(n.nspname, 'public'), c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
  AND n.nspname NOT LIKE 'pg_temp%' AND NOT c.relispartition
ORDER BY 1 NULLS FIRST, 2
"""
"""The schemas and names of tables and views; null for the schema public."""


def key_names(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[bool, list[str]]]:
    """Yields the columns of each unique key in the rows of `KEYS`, and whether it is primary."""
    for is_primary, names in rows:
        yield bool(is_primary), json.loads(names)
