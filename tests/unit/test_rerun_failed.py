"""The failed tests of a run, by the node IDs that pytest finds."""

from __future__ import annotations

import json

import pytest

from rerun_failed import failed_tests


@pytest.mark.parametrize(
    ("cached", "expected"),
    [
        (["tests/test_a.py::test_b"], ["tests/test_a.py::test_b"]),
        (["tests/test_a.py::test_b@kafka"], ["tests/test_a.py::test_b"]),
        (["tests/test_a.py::test_b[x@y]@cli/test_a"], ["tests/test_a.py::test_b[x@y]"]),
        (["tests/test_a.py::test_b[x@y]"], ["tests/test_a.py::test_b[x@y]"]),
        (["tests/test_a.py::test_b", "tests/test_c.py"], None),
    ],
)
def test_failed_tests(cached: list[str], expected: list[str] | None) -> None:
    assert failed_tests(json.dumps(dict.fromkeys(cached, True))) == expected
