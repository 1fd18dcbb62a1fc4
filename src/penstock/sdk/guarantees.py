"""Delivery guarantees of sources and sinks, for `penstock describe` and the docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML

from penstock.sdk.capability import Capability
from penstock.sdk.component import Component, Context, Level
from penstock.sdk.sink import Sink
from penstock.sdk.source import Source


@dataclass(frozen=True)
class DeliveryGuarantee:
    """The guarantees of a component with the options `variant`."""

    variant: str
    parallelism: str
    guarantee: Level
    acknowledges: str | None
    capabilities: tuple[Capability, ...]

    @property
    def acknowledged(self) -> str:
        """The condition of an acknowledgement as text, also without acknowledgements."""
        never = "not needed: the offset is in the state"
        return self.acknowledges or (never if self.guarantee == "exactly once" else "never")


ACKNOWLEDGED_LABEL = {"source": "acknowledged", "sink": "a batch is done when"}
"""The label of `DeliveryGuarantee.acknowledged`, by kind."""


def delivery_guarantee(component: Source[Any] | Sink[Any], variant: str = "") -> DeliveryGuarantee:
    """Returns the guarantee of a component."""
    return DeliveryGuarantee(
        variant, component.parallelism, component.guarantee, component.acknowledges,
        tuple(sorted(component.capabilities)),
    )  # fmt: skip


def guarantees(component: type[Component[Any]]) -> tuple[DeliveryGuarantee, ...]:
    """Returns the guarantees of all variants of a source or sink; none for other components."""
    components = variants(component).items()
    return tuple(
        delivery_guarantee(instance, name)
        for name, instance in components
        if isinstance(instance, Source | Sink)
    )


def variants(component: type[Component[Any]]) -> dict[str, Component[Any]]:
    """Creates each variant from its options alone; `""` is the name without variants.

    A source that is only a lookup table has none.
    """
    if Capability.LOOKUP_BY_KEY in component.capabilities:
        return {}
    instances = {name: component.create(_config(component, name)) for name in component.variants}
    return instances or {"": _without_options(component)}


def _config(component: type[Component[Any]], options: str) -> Any:
    """Returns a config with these options, without validation of required options."""
    values = YAML(typ="safe").load(f"{{{options}}}")
    unknown = values.keys() - component.config_type.model_fields.keys()
    assert not unknown, f"{component.__name__} has no options {unknown}"
    return component.config_type.model_construct(**values)


def _without_options(component: type[Component[Any]]) -> Component[Any]:
    """Creates a component without options."""
    instance = component.__new__(component)
    instance.config, instance.context = component.config_type.model_construct(), Context()
    return instance
