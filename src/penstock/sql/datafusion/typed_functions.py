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
_ALL_WHOLE = "4503599627370496D"
"""The double from which on all doubles are whole numbers. NaN is greater in Spark."""


@dataclass(frozen=True)
class TypedFunction:
    """A function: its parameters, and an expression.

    `cases` are other expressions by the types of the arguments: `integers` (all), `doubles` (at
    least one), or `nested` (the first is an array of arrays). The first one that holds is used.
    """

    name: str
    parameters: tuple[str, ...]
    sql: str
    cases: tuple[tuple[str, str], ...] = ()


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
        CARDINALITY, ("a",), "cardinality(a)",
        (("nested", f"{CARDINALITY}(flatten(array_compact(a)))"),),
    ),
    TypedFunction(
        DIMENSIONS, ("a",), "if(a IS NULL, NULL, array(CAST(size(a) AS BIGINT)))",
        (("nested", f"array_prepend({DIMENSIONS}(get(a, 0)), CAST(size(a) AS BIGINT))"),),
    ),
)  # fmt: skip
