"""Wrong functions of 515-function-file-annotations.sql."""

import no_such_module

from penstock import udaf, udf, udtf


@udf
def untyped(x) -> int:
    return x


@udf
def unknown(x: complex) -> int:
    return no_such_module.f(x)


@udf
def silent(x: int):
    return x


@udtf
def rows(x: int):
    yield x


@udaf(timeot=3)
def middle(x: list[int]) -> int:
    return x[0]


@udf(returns="DUBLE")
def typed(x: int):
    return x


@udf(dependencies=["no-such-package"])
def dependent(x: list[int]) -> int:
    return len(x)


@udf
def variable(*x: int) -> int:
    return len(x)


@udf(name="lower")
def clash(x: str) -> str:
    return x


@udtf(returns="word STRNG, length INTT")
def several(x, y: complex, z: int):
    yield x
