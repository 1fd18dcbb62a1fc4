"""Derivatives: polynomials, points that are missing, rows that wait."""

from __future__ import annotations

import math

import numpy as np
import pytest
from handler_batches import batch, column, columns

from penstock.handlers.derivative import Derivative, DerivativeCase
from penstock.handlers.errors import HandlerError
from penstock.handlers.points import derivative_weights

SECOND = 10**9
CASES = {"d": DerivativeCase("v")}


def test_rows_wait_for_their_neighbourhood() -> None:
    handler = Derivative(CASES, SECOND, 2 * SECOND)
    (first,) = handler.handle(batch(time=[0, 1, 2, 3, 4, 5], v=[0.0, 2, 4, 6, 8, 10]))
    assert column(first, "time") == [0, 1, 2]
    assert column(first, "d") == pytest.approx([2, 2, 2])
    restored = Derivative(CASES, SECOND, 2 * SECOND)
    restored.load(handler.save())
    for each in (handler, restored):
        (second,) = each.handle(batch(time=[6, 7, 8], v=[12.0, 14, 16]))
        assert column(second, "time") == [3, 4, 5]
        assert column(second, "d") == pytest.approx([2, 2, 2])


def test_rows_that_do_not_wait() -> None:
    handler = Derivative(CASES, SECOND, 2 * SECOND, no_wait=True)
    found = [
        column(output, "d")
        for times in ([0, 1, 2, 3], [4, 5])
        for output in handler.handle(batch(time=times, v=[float(t * t) for t in times]))
    ]
    assert found[0] == pytest.approx([0, 2, 4, 6]) and found[1] == pytest.approx([8, 10])


def test_units_are_divided_as_fractions() -> None:
    handler = Derivative(CASES, 10 * SECOND, 20 * SECOND, no_wait=True)
    (output,) = handler.handle(batch(time=[0, 5, 10, 15], v=[0.0, 5, 10, 15]))
    assert column(output, "d") == pytest.approx([10] * 4)


def test_points_that_are_missing() -> None:
    cases = {"d": DerivativeCase("v"), "e": DerivativeCase("v", 2), "z": DerivativeCase("w", 0)}
    handler = Derivative(cases, SECOND, SECOND, no_wait=True)
    rows = batch(time=[0, 1, 5, 9, 9], v=[0, 3, None, 1, 2], w=[1.5, None, None, 4.0, 4.0])
    (output,) = handler.handle(rows)
    assert column(output, "d") == [pytest.approx(3), pytest.approx(3), None, None, None]
    assert column(output, "e") == [None] * 5
    assert column(output, "z") == [1.5, 1.5, None, None, None]


def test_a_column_without_a_value() -> None:
    handler = Derivative(CASES, SECOND, SECOND, no_wait=True)
    assert column(handler.handle(batch(time=[0, 1], v=[None, None]))[0], "d") == [None, None]


def test_columns_that_change_while_rows_wait() -> None:
    handler = Derivative(CASES, SECOND, SECOND)
    handler.handle(batch(time=[0, 1], v=[0.0, 1.0]))
    outputs = handler.handle(batch(time=[2, 3, 4], v=[2.0, 3.0, 4.0], extra=[1, 2, 3]))
    assert columns(outputs, "time") == [[0, 1], [2]]
    assert [output.schema.names for output in outputs] == [
        ["time", "v", "d"], ["time", "v", "extra", "d"]
    ]  # fmt: skip


def test_errors() -> None:
    handler = Derivative(CASES, SECOND, SECOND)
    before = handler.save()
    with pytest.raises(HandlerError, match="has not column with name v"):
        handler.handle(batch(time=[0], w=[1]))
    with pytest.raises(HandlerError, match="Type error: Derivative requires numeric type"):
        handler.handle(batch(time=[0], v=["x"]))
    assert handler.save() == before
    with pytest.raises(HandlerError, match="at most 500 are supported"):
        handler.handle(batch(unit="ms", time=list(range(3000)), v=[1.0] * 3000))


def test_weights_are_exact_for_polynomials() -> None:
    random = np.random.default_rng(7)
    for count in range(1, 8):
        for order in range(min(count, 4)):
            nodes = random.choice(81, count, replace=False) / 8 - 5
            coefficients = random.integers(-5, 6, count)
            values = np.polynomial.Polynomial(coefficients)(nodes)
            products = derivative_weights(nodes[None, :], order) * values
            expected = coefficients[order] * math.factorial(order)
            scale = max(float(np.abs(products).max()), 1.0)
            assert float(products.sum()) == pytest.approx(expected, abs=1e-9 * scale)
