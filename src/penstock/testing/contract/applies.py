"""Which of the contract's tests are about a component: told before they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from penstock.sdk import Capability

F = TypeVar("F", bound=Callable[..., Any])


class Condition(NamedTuple):
    """Whether a test is about the component of a contract's instance, and why it is not."""

    met: Callable[[Any], bool]
    otherwise: Callable[[Any], str]


def only(met: Callable[[Any], bool], otherwise: Callable[[Any], str]) -> Callable[[F], F]:
    """Marks a test that is skipped where the condition is not met."""

    def mark(test: F) -> F:
        vars(test)["conditions"] = (*getattr(test, "conditions", ()), Condition(met, otherwise))
        return test

    return mark


def needs(capability: Capability) -> Callable[[F], F]:
    """Marks a test that is about what only those can do that declare it."""
    return only(
        lambda case: capability in case.capabilities,
        lambda case: f"{case.component.__name__} does not declare {capability}",
    )


def once(test: F) -> F:
    """Marks a test of what other options of the same client cannot change.

    A class of tests that varies another one leaves it to that.
    """
    return only(
        lambda case: case.whole or _varied(case) is None,
        lambda case: f"{_varied(case)} has it, with the same client",
    )(test)


def _varied(case: Any) -> str | None:
    """The class of tests that this one takes over with other options."""
    names = (each.__name__ for each in type(case).__mro__[1:])
    return next((name for name in names if name.startswith("Test")), None)


def absent(fixture: F) -> F:
    """Marks a fixture that skips its tests: a contract's class that has the thing gives it."""
    vars(fixture)["absent"] = True
    return fixture


def skipped(test: Callable[..., Any], case: Any) -> str | None:
    """Why a test is not about the component of `case`; None if it is."""
    conditions: tuple[Condition, ...] = getattr(test, "conditions", ())
    return next((each.otherwise(case) for each in conditions if not each.met(case)), None)
