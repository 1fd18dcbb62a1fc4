"""User-defined functions, as far as the analysis of SQL requires."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UserFunctions:
    """Names of user-defined functions in lower case, and their properties."""

    names: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    """Functions over several rows."""
    collecting: frozenset[str] = frozenset()
    """Functions in Python over lists of the values of several rows."""
    nondeterministic: frozenset[str] = frozenset()
    """Functions whose results differ between two evaluations of the same rows."""


NO_FUNCTIONS = UserFunctions()


def row_function(aggregate: str) -> str:
    """Returns the name of the function that makes a row of the arguments of an aggregate."""
    return f"{aggregate.lower()} row"


def rows_function(aggregate: str) -> str:
    """Returns the name of the function that computes an aggregate of a list of rows."""
    return f"{aggregate.lower()} rows"
