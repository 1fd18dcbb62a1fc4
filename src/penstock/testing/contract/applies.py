"""Selection of the contract's tests for a component, at collection and at run time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock.sdk import Capability
from penstock.sdk.component import Component
from penstock.sdk.guarantees import guarantees

if TYPE_CHECKING:
    import pytest

F = TypeVar("F", bound=Callable[..., Any])
_optional_fixtures: list[Any] = []


class Condition(NamedTuple):
    """A condition on the contract class of a test, and the reason to skip the test otherwise."""

    holds: Callable[[Any], bool]
    reason: Callable[[Any], str]


def run_if(holds: Callable[[Any], bool], reason: Callable[[Any], str]) -> Callable[[F], F]:
    """Marks a test to run only where a condition holds for the contract class.

    Both functions receive an instance of the class. `reason` is the reason to skip the test.
    """

    def mark(test: F) -> F:
        vars(test)["conditions"] = (*getattr(test, "conditions", ()), Condition(holds, reason))
        return test

    return mark


def requires(capability: Capability) -> Callable[[F], F]:
    """Marks a test to run only for components with a capability."""
    return run_if(
        lambda contract: capability in contract.capabilities,
        lambda contract: f"{contract.component.__name__} does not declare {capability}",
    )


def requires_rows(test: F) -> F:
    """Marks a test to run only where the transport carries rows, not opaque payloads."""
    return run_if(
        lambda contract: contract.effective_payload_kind == "rows",
        lambda contract: f"the transport carries {contract.effective_payload_kind}",
    )(test)


def requires_opaque_payloads(test: F) -> F:
    """Marks a test to run only where the transport carries payloads of any format."""
    return run_if(
        lambda contract: contract.effective_payload_kind != "rows",
        lambda _: "the transport carries rows",
    )(test)


def once_per_component(test: F) -> F:
    """Marks a test of the component class: it runs for the first contract class of a component."""
    vars(test)["shared_by"] = lambda contract: ("",)
    return test


def once_per_transport(test: F) -> F:
    """Marks a test of the client: it runs for the first contract class of each `transport`.

    It does not run for a component with the `implementation` of another one.
    """
    vars(test)["shared_by"] = lambda contract: (f"transport {contract.transport}",)
    return _runs_for_implementation(test)


def once_per_variant(test: F) -> F:
    """Marks a test of acknowledgements: it runs for the first contract class of each `variant`."""
    vars(test)["shared_by"] = lambda contract: (f"variant {contract.variant}",)
    return test


def once_per_pipeline(test: F) -> F:
    """Marks a test of a pipeline: it runs for each `transport` whose class has another `variant`.

    Spark treats a variant the same over all transports. The test does not run for a component with
    the `implementation` of another one.
    """
    vars(test)["shared_by"] = lambda contract: (
        f"transport {contract.transport}", f"variant {contract.variant}",
    )  # fmt: skip
    return _runs_for_implementation(test)


def _runs_for_implementation(test: F) -> F:
    return run_if(
        lambda contract: contract.implementation is None,
        lambda contract: f"the test runs for {contract.implementation.__name__}",
    )(test)


def optional_fixture(fixture: F) -> F:
    """Declares a fixture without implementation. A contract class may define it.

    Place the decorator above `@pytest.fixture`. Tests that request the fixture run only for classes
    that define it.
    """
    _optional_fixtures.append(fixture)
    return fixture


def provides(contract: Any, fixture: str) -> bool:
    """Returns whether a contract class defines a fixture, also one declared as optional."""
    declared = inspect.getattr_static(type(contract), fixture, None)
    return not any(declared is optional for optional in _optional_fixtures)


def skip_reason(test: Callable[..., Any], contract: Any) -> str | None:
    """Returns the reason to skip a test for a contract class; None if the test applies."""
    for condition in _find_mark(test, contract, "conditions") or ():
        if not condition.holds(contract):
            return str(condition.reason(contract))
    return None


def applicable(items: list[pytest.Item]) -> list[pytest.Item]:
    """Returns the items without tests of the contract that do not apply.

    Of the classes that share a test, the first one keeps it. Conditions on capabilities that depend
    on options are checked when the test runs.
    """
    shared: set[Any] = set()
    return [item for item in items if _applies(item, shared)]


def _applies(item: Any, shared: set[Any]) -> bool:
    if not hasattr(getattr(item, "cls", None), "known_failures"):
        return True
    if not hasattr(item.cls, "component"):
        return True
    contract = _create_instance(item.cls)
    if not all(provides(contract, name) for name in item.fixturenames):
        return False
    if hasattr(contract, "capabilities") and skip_reason(item.function, contract) is not None:
        return False
    shared_by = _find_mark(item.function, contract, "shared_by")
    if shared_by is None:
        return True
    test = (item.function.__qualname__, contract.component)
    keys = {(*test, part) for part in shared_by(contract)}
    is_first = shared.isdisjoint(keys)
    shared |= keys
    return is_first


def _create_instance(cls: type[Any]) -> Any:
    """Creates an instance of a contract class, with the capabilities of its variant if known."""
    contract: Any = object.__new__(cls)
    with suppress(Exception):
        declared = _capabilities(cls.component)
        if cls.variant in declared:
            contract.capabilities = declared[cls.variant]
    return contract


@cache
def _capabilities(component: type[Component[Any]]) -> Mapping[str, frozenset[Capability]]:
    """Returns the capabilities of each variant of a component."""
    return {each.variant: frozenset(each.capabilities) for each in guarantees(component)}


def _find_mark(test: Callable[..., Any], contract: Any, mark: str) -> Any:
    """Returns a mark of a test, else of the overridden test; None if there is no mark."""
    name = test.__name__
    definitions = [test, *(vars(base).get(name) for base in type(contract).__mro__)]
    return next((vars(d)[mark] for d in definitions if d and mark in vars(d)), None)
