"""What sources and sinks promise, in each of their variants. For `penstock describe` and docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML

from penstock.sdk.capability import Capability
from penstock.sdk.component import Component, Context, Level
from penstock.sdk.sink import Sink
from penstock.sdk.source import Source


@dataclass(frozen=True)
class Promise:
    """What a user can rely on with the options `variant`."""

    variant: str
    parallelism: str
    guarantee: Level
    acknowledges: str | None
    capabilities: tuple[Capability, ...]

    @property
    def told(self) -> str:
        """`acknowledges`, also where it is None."""
        never = "no need: the position is in the state"
        return self.acknowledges or (never if self.guarantee == "exactly once" else "never")


TOLD = {"source": "acknowledged", "sink": "a batch is done when"}
"""What `Promise.told` tells."""


def promise(component: Source[Any] | Sink[Any], variant: str = "") -> Promise:
    """The promise of a component that is made."""
    return Promise(
        variant, component.parallelism, component.guarantee, component.acknowledges,
        tuple(sorted(component.capabilities)),
    )  # fmt: skip


def promises(component: type[Component[Any]]) -> tuple[Promise, ...]:
    """Those of all variants; none of what is neither source nor sink."""
    made = variants(component).items()
    return tuple(promise(each, name) for name, each in made if isinstance(each, Source | Sink))


def variants(component: type[Component[Any]]) -> dict[str, Component[Any]]:
    """Each variant made of its options alone, to be asked what it is; `""` where there is one."""
    made = {name: component.of(_config(component, name)) for name in component.variants}
    return made or {"": _bare(component)}


def _config(component: type[Component[Any]], options: str) -> Any:
    """The options alone, whatever else is required."""
    given = YAML(typ="safe").load(f"{{{options}}}")
    unknown = given.keys() - component.config_type.model_fields.keys()
    assert not unknown, f"{component.__name__} has no options {unknown}"
    return component.config_type.model_construct(**given)


def _bare(component: type[Component[Any]]) -> Component[Any]:
    """Made without options, some of which may be required."""
    bare = component.__new__(component)
    bare.config, bare.context = component.config_type.model_construct(), Context()
    return bare
