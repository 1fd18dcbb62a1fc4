"""Functions of SQL whose meaning depends on the types of their arguments.

Queries of DataFusion are translated to calls of these functions. Their names are part of the
fingerprints of pipelines that have run.
"""

from __future__ import annotations

from dataclasses import dataclass

DIVIDE = "arroyo_divide"
CARDINALITY = "arroyo_cardinality"
DIMENSIONS = "arroyo_dims"
FLOOR, CEIL, ROUND = "arroyo_floor", "arroyo_ceil", "arroyo_round"
ROUND_TO = "arroyo_round_to"
TEXT, BIGINT, TYPEOF = "arroyo_text", "arroyo_bigint", "arroyo_typeof"
SHARES, QUANTILE = "arroyo_shares", "arroyo_quantile"
_ALL_WHOLE = "4503599627370496D"
"""The double from which on all doubles are whole numbers. NaN is greater in Spark."""


@dataclass(frozen=True)
class TypedFunction:
    """A function: its parameters, and an expression.

    `cases` are other expressions by the types of the arguments: `integers` (all), `doubles` (at
    least one), `times` (all are timestamps), or `nested` (the first is an array of arrays). The
    first one that holds is used. `callers` are functions whose translation calls this one.
    """

    name: str
    parameters: tuple[str, ...]
    sql: str
    cases: tuple[tuple[str, str], ...] = ()
    callers: tuple[str, ...] = ()


_TEXT_OF_TIME = """
CASE WHEN unix_micros(CAST(a AS TIMESTAMP)) % 1000000 = 0 THEN replace(CAST(a AS STRING), ' ', 'T')
     WHEN unix_micros(CAST(a AS TIMESTAMP)) % 1000 = 0
     THEN rpad(replace(CAST(a AS STRING), ' ', 'T'), 23, '0')
     ELSE rpad(replace(CAST(a AS STRING), ' ', 'T'), 26, '0') END
"""
"""The text of a time: no fraction, milliseconds or microseconds."""
_TEXT_OF_DOUBLE = """
CASE WHEN a = 0 OR isnan(a) OR (abs(a) >= 1e-3 AND abs(a) < 1e7) THEN CAST(a AS STRING)
     WHEN abs(a) >= 1e-5 AND abs(a) < 1e16
     THEN regexp_replace(CAST(TRY_CAST(CAST(a AS STRING) AS DECIMAL(38, 22)) AS STRING),
                         '([.][0-9]+?)0*$', '$1')
     ELSE replace(replace(replace(CAST(a AS STRING), 'Infinity', 'inf'), '.0E', 'e'), 'E', 'e') END
"""
"""The text of a double: digits from 0.00001 to 1e16, else an exponent."""
_ARROW_TYPES = {
    "tinyint": "Int8", "smallint": "Int16", "int": "Int32", "bigint": "Int64", "float": "Float32",
    "double": "Float64", "string": "Utf8", "binary": "Binary", "boolean": "Boolean",
    "date": "Date32", "timestamp": "Timestamp(ns)", "timestamp_ntz": "Timestamp(ns)",
    "void": "Null",
}  # fmt: skip
_TYPE_NAMES = " ".join(f"WHEN '{each}' THEN '{arrow}'" for each, arrow in _ARROW_TYPES.items())
_TYPE = (
    f"CASE typeof(a) {_TYPE_NAMES} "
    "ELSE regexp_replace(typeof(a), '^decimal[(]([0-9]+),([0-9]+)[)]$', 'Decimal128($1, $2)') END"
)
_MOST = 85
"""The most values of which a t-digest of DataFusion has a centroid for each."""
_GRID = 100
_SHARES = ", ".join(f"{(index + 0.5) / _GRID}D" for index in range(_GRID))
_VALUE = "_s.grid[CAST(floor(({} + 0.5D) * 100 / _s.count) AS INT)]"
_QUANTILE = f"""
if(count > {_MOST}, grid[{_GRID}], element_at(transform(
    array(named_struct('grid', grid, 'count', count, 'rank', share * count,
                       'place', least(CAST(floor(share * count) AS INT), CAST(count AS INT) - 1))),
    _s -> element_at(transform(
        array(named_struct(
            'low', {_VALUE.format("greatest(_s.place - 1, 0)")},
            'at', {_VALUE.format("_s.place")},
            'high', {_VALUE.format("least(_s.place + 1, CAST(_s.count AS INT) - 1)")},
            'part', (_s.rank - _s.place - 0.5D) / if(_s.place IN (0, _s.count - 1), 1D, 2D))),
        _n -> greatest(_n.low, least(_n.high, _n.at + _n.part * (_n.high - _n.low)))), 1)), 1))
"""
"""The quantile of a t-digest: around the value of the rank, by the distance of its neighbours.

`grid` are the values at the shares of `arroyo_shares`, which contain all of up to 85 values. The
last one is the value at the share itself.
"""
_PERCENTILES = ("approx_median", "approx_percentile_cont")

TYPED_FUNCTIONS = (
    TypedFunction(
        DIVIDE, ("a", "b"), "a / b",
        (("integers", "a DIV b"), ("doubles", "if(b = 0, a * DOUBLE('Infinity'), a / b)")),
    ),
    *(
        TypedFunction(
            name, ("a",), f"{function}(a)",
            (
                ("integers", "CAST(a AS DOUBLE)"),
                ("doubles", f"if(abs(a) >= {_ALL_WHOLE}, a, CAST({function}(a) AS DOUBLE))"),
            ),
        )
        for name, function in ((FLOOR, "floor"), (CEIL, "ceil"), (ROUND, "round"))
    ),
    TypedFunction(
        ROUND_TO, ("a", "digits"), "round(a, digits)",
        (
            (
                "doubles",
                f"if(abs(a) >= {_ALL_WHOLE}, a, "
                "round(a * power(10D, digits)) / power(10D, digits))",
            ),
        ),
    ),
    TypedFunction(
        TEXT, ("a",), "CAST(a AS STRING)",
        (("times", _TEXT_OF_TIME), ("doubles", _TEXT_OF_DOUBLE)),
    ),
    TypedFunction(
        BIGINT, ("a",), "CAST(a AS BIGINT)",
        (("times", "unix_micros(CAST(a AS TIMESTAMP)) * 1000"),),
    ),
    TypedFunction(TYPEOF, ("a",), _TYPE, callers=("arrow_typeof",)),
    TypedFunction(SHARES, ("share",), f"array({_SHARES}, share)", callers=_PERCENTILES),
    TypedFunction(QUANTILE, ("grid", "count", "share"), _QUANTILE, callers=_PERCENTILES),
    TypedFunction(
        CARDINALITY, ("a",), "cardinality(a)",
        (("nested", f"{CARDINALITY}(flatten(array_compact(a)))"),),
    ),
    TypedFunction(
        DIMENSIONS, ("a",), "if(a IS NULL, NULL, array(CAST(size(a) AS BIGINT)))",
        (("nested", f"array_prepend({DIMENSIONS}(get(a, 0)), CAST(size(a) AS BIGINT))"),),
    ),
)  # fmt: skip
