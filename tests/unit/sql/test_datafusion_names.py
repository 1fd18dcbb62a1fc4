"""Columns without a name have DataFusion's names, which the package `datafusion` states."""

from __future__ import annotations

import datafusion
import pytest

from penstock.sql.datafusion.meaning.queries import translate_query

EXPRESSIONS = """\
v + 1
(v + w) * 2
v - (w - 2)
-v
-(v + 1)
- -v
-1
+v
(v)
V
t."v"
not (v = 1 and b)
v is not null
v not between 1 and -2
v not in (1, 2)
case when v = 1 then 2 else 3 end
case v when 1 then 'x' end
case when upper(s) = 'A' then concat(s, 'x') end
s || 'x' || ('a' || 'b')
s not like 'a%'
count(*)
count(distinct v)
sum(v) filter (where w > 1)
cast(v as double) + v::decimal(10, 2)
try_cast(s as bigint) is null
1.50
1e3
.5
18446744073709551615
1e-7
'it''s'
null
true
at - interval '5 seconds'
interval '1 month 2 days'
interval '1' hour
timestamp '2024-01-01 00:00:00'
substring(s from 1 for 2)
trim(both 'a' from s)
trim(leading 'a' from s)
position('a' in s)
extract(hour from at)
overlay(s placing 'x' from 1 for 1)
arr[1]
arr[1:2]
st.f
t.st.g.h
st['f'] + 1
[1, v]
array[1, 2]
unnest(arr) + 1
row_number() over (partition by s order by v)
sum(v) over (order by v desc rows 2 preceding)
sum(v) over (order by w range between unbounded preceding and unbounded following)
count(*) over ()
array_agg(distinct v order by v)
first_value(v) ignore nulls
approx_percentile_cont(0.9) within group (order by v)
v <> 1
v ^ 1
v << 1
s !~* 'a'
1 = any(arr) and b
v is distinct from 1
b is not false
at at time zone 'UTC'
current_date
now() - at
SUM(V) / COUNT(*)"""
TABLE = """
CREATE TABLE t AS SELECT * FROM (VALUES (
    1, 2, 'a', true, make_array(1, 2), timestamp '2024-01-01 00:00:00',
    named_struct('f', 1, 'g', named_struct('h', 'x'))
)) AS x(v, w, s, b, arr, at, st)"""


@pytest.fixture(scope="module")
def context() -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    context.sql(TABLE).collect()
    return context


@pytest.mark.parametrize("text", EXPRESSIONS.splitlines())
def test_name(context: datafusion.SessionContext, text: str) -> None:
    (expected,) = context.sql(f"SELECT {text} FROM t").schema().names
    named = translate_query(f"SELECT {text} FROM t").text
    alias = named.removesuffix(" FROM t").rpartition(" AS ")[2].strip("`")
    plain = text.rpartition(".")[2].strip('"()')
    assert (alias if " AS " in named else plain) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a.v + 1 FROM t AS a", "SELECT a.v + 1 AS `a.v + Int64(1)` FROM t AS a"),
        ("SELECT v + 1 FROM t, u", "SELECT v + 1 AS `v + Int64(1)` FROM t, u"),
        ("SELECT v AS Total FROM t", "SELECT v AS total FROM t"),
        ('SELECT v AS "Total" FROM t', "SELECT v AS `Total` FROM t"),
        ("SELECT v::INT, v::TEXT FROM t", "SELECT v::INT AS `t.v`, arroyo_text(v) FROM t"),
        ("SELECT x.a FROM (SELECT s.a FROM t) AS x", "SELECT x.a FROM (SELECT s.a FROM t) AS x"),
        ("SELECT tumble(INTERVAL '1 day'), count(*) FROM t GROUP BY 1",
         "SELECT tumble(INTERVAL '1 day'), count(*) AS `count(*)` FROM t GROUP BY 1"),
        ("SELECT *, t.* FROM t", "SELECT *, t.* FROM t"),
        ("SELECT 10L, 2.5BD FROM t", "SELECT 10L, 2.5BD FROM t"),
        ("SELECT - 0x1F FROM t", "SELECT - 0x1F FROM t"),
        ("SELECT EXISTS (SELECT 1) FROM t", "SELECT EXISTS (SELECT 1) FROM t"),
    ],
)  # fmt: skip
def test_query(query: str, expected: str) -> None:
    assert translate_query(query).text == expected
