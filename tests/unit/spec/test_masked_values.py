"""Values of variables in messages: their expressions stand in their place."""

from __future__ import annotations

import pytest

from penstock.spec.source_map import SourceValue, Substitution
from penstock.spec.value_descriptions import mask_substitutions


@pytest.mark.parametrize(
    ("value", "secret", "masked"),
    [("abc", False, True), ("ab", False, False), ("a", True, True), ("x\ny", False, True)],
)
def test_short_values_stay_unless_they_are_secret(value: str, secret: bool, masked: bool) -> None:
    source = SourceValue("", substitutions=(Substitution(value, "${NAME}", secret),))
    for text in (value, repr(value)[1:-1]):
        expected = "found ${NAME}." if masked else f"found {text}."
        assert mask_substitutions(f"found {text}.", source) == expected
