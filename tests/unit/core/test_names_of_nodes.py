"""Names of nodes and pipelines: their length, and names that are derived from others."""

from __future__ import annotations

import pytest

from penstock.core.names import (
    MAX_LENGTH,
    derived_name,
    node_name_problem,
    pipeline_name_problem,
    quote_name,
    quote_standard_name,
    standard_literal,
)


@pytest.mark.parametrize("problem", [node_name_problem, pipeline_name_problem])
def test_the_longest_name(problem: object) -> None:
    assert callable(problem)
    assert problem("a" * MAX_LENGTH) is None
    assert "at most 63 characters" in problem("a" * (MAX_LENGTH + 1))


@pytest.mark.parametrize("name", ["1a", "_a", "a-b", "a.b", "é", "a\n", ""])
def test_invalid_names_of_nodes(name: str) -> None:
    assert "starts with a letter" in str(node_name_problem(name))


def test_a_derived_name_is_as_long_as_a_name_may_be() -> None:
    short, long, other = "a" * 58, "a" * 59, "a" * 58 + "b"
    assert derived_name(short, "_rows") == short + "_rows"
    names = {derived_name(long, "_rows"), derived_name(other, "_rows")}
    assert len(names) == 2
    assert all(len(name) == MAX_LENGTH and name.endswith("_rows") for name in names)


def test_a_quote_within_a_name_or_a_text() -> None:
    assert quote_name('a`"b') == '`a``"b`'
    assert quote_standard_name('a`"b') == '"a`""b"'
    assert standard_literal("it's \\") == "'it''s \\'"
