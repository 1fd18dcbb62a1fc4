"""Rows and keys of updating queries: equal ones are those that Spark groups together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.engine.updating.changelog import to_changes
from penstock.engine.updating.hashing import hashes
from penstock.engine.updating.rows import WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NONE = "cast(null as {})".format
NAN = "double('NaN')"
INTS, MAP, PAIR = "array<int>", "map<string,int>", "struct<a:int,b:int>"
VALUES = {
    "structs": [
        "named_struct('a', null, 'b', 1)::struct<a:int,b:int>", NONE(PAIR),
        "named_struct('a', 1, 'b', null)::struct<a:int,b:int>",
        "named_struct('a', null, 'b', null)::struct<a:int,b:int>", "named_struct('a', 1, 'b', 2)",
    ],
    "arrays": [
        "array(1, null, 2)", "array(1, 2)", "array(1, 2, null)", "array(2, 1)",
        "cast(array() as array<int>)", "array(cast(null as int))", NONE(INTS), "array(1, 2)",
    ],
    "nested arrays": [
        "array(array(1), array(2, 3))", "array(array(1, 2), array(3))", "array(array(1, 2, 3))",
        "array(array(1, 2, 3), cast(array() as array<int>))",
        f"array({NONE(INTS)}, array(1, 2, 3))", "array(array(1, 2, 3))",
    ],
    "arrays in structs": [
        "named_struct('a', array(1, 2), 'b', array(3))",
        "named_struct('a', array(1), 'b', array(2, 3))",
        "named_struct('a', cast(array() as array<int>), 'b', array(1, 2, 3))",
    ],
    "structs in arrays": [
        "array(named_struct('a', 1, 'b', 2))::array<struct<a:int,b:int>>",
        "array(named_struct('a', 1, 'b', null), named_struct('a', null, 'b', 2))"
        "::array<struct<a:int,b:int>>",
        "array(named_struct('a', 1, 'b', 2), null)::array<struct<a:int,b:int>>",
    ],
    "maps": [
        "map('a', 1)", "map('a', cast(null as int))", "cast(map() as map<string,int>)", NONE(MAP),
        "map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)", "map('a', 2, 'b', 1)",
    ],
    "maps in arrays": ["array(map('a', 1, 'b', 2))", "array(map('b', 2, 'a', 1))"],
    "binaries": ["X''", NONE("binary"), "X'00'", "X'0000'"],
    "strings": ["''", NONE("string"), "'a'", "'A'", "'a '", "'é'", "'e\u0301'", "'\U0001f600'"],
    "collated strings": [f"'{text}' COLLATE UTF8_LCASE" for text in ("a", "A", "b")],
    "numbers": ["0.0D", "-0.0D", NAN, "-" + NAN, "1.0D", NONE("double")],
    "numbers in arrays": ["array(0.0D)", "array(-0.0D)", f"array({NAN})", f"array(-{NAN})"],
    "numbers in structs": [f"named_struct('a', {value})" for value in ("0.0D", "-0.0D", NAN)],
    "decimals": ["1.10::decimal(10,2)", "1.1::decimal(10,2)", "110::decimal(10,2)"],
    "large decimals": ["1.10::decimal(38,2)", "1.1::decimal(38,2)", "11::decimal(38,2)"],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_equal_hashes_are_groups_of_spark(penstock_spark: SparkSession, name: str) -> None:
    values = enumerate(VALUES[name])
    rows = penstock_spark.sql(
        " UNION ALL ".join(f"SELECT {number} AS n, {value} AS v" for number, value in values)
    ).coalesce(1)
    columns = dict(zip("ab", hashes([rows.v], [rows.schema["v"].dataType]), strict=True))
    hashed = rows.withColumns(columns)
    hashed.createOrReplaceTempView("hashed")
    groups, first, second = (
        {frozenset(row[0]) for row in hashed.groupBy(key).agg({"n": "collect_list"}).select(
            "collect_list(n)").collect()}
        for key in ("v", "a", "b")
    )  # fmt: skip
    assert groups == first == second


def test_neighbouring_columns_are_not_confused(penstock_spark: SparkSession) -> None:
    rows = penstock_spark.sql(
        f"SELECT array(1, 2) AS a, array(3) AS b, map('k', 1) AS c, 1 AS {WEIGHT} "
        f"UNION ALL SELECT array(1), array(2, 3), map('k', 1), -1"
    )
    changes = to_changes(rows, ["a"], "op").collect()
    assert [row.op for row in sorted(changes)] == ["d", "i"]


def test_variants_are_compared_by_value_and_type(penstock_spark: SparkSession) -> None:
    texts = ["null", "1", '"1"', "1.5", '{"a": 1, "b": [2]}', '{"b": [2], "a": 1}', "{}", "[]"]
    rows = penstock_spark.createDataFrame([(text,) for text in [*texts, None]], "t string")
    rows = rows.selectExpr("parse_json(t) AS v", f"1 AS {WEIGHT}")
    changes = to_changes(rows, [], "op").selectExpr("to_json(v) AS t").collect()
    assert len(changes) == len(texts) + 1
    assert len({row.t for row in changes}) == len(texts)
    hashed = rows.select(*hashes([rows.v], [rows.schema["v"].dataType])).distinct()
    assert hashed.count() == len(texts)
