"""The extras of the steps of a batch, and of the systems that they read."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sdk import registry
from penstock.transforms.steps.codec_config import Codec
from penstock.transforms.steps.config import StepsConfig

_OF_STEPS = {"vrl": "vrl", "wasm": "wasm"}
_OF_CODECS = {"protobuf": "protobuf", "registry": "registry"}


def extras_of(config: StepsConfig) -> frozenset[str]:
    """Returns the extras of the steps, lookups, tables and formats of the options."""
    inputs, outputs = list(config.inputs.values()), [config.output, config.failures]
    lookups = [lookup for step in config.steps for lookup in step.lookups]
    found = {_OF_STEPS[step.type] for step in config.steps if step.type in _OF_STEPS}
    found |= {_OF_CODECS[codec.type] for codec in _codecs(config) if codec.type in _OF_CODECS}
    types = ["redis" for _ in lookups]
    types += [each.tables.type for each in inputs if each.tables is not None]
    types += [each.target.type for each in outputs if each is not None and each.target is not None]
    found |= {registry.find("source", type_).extra or "" for type_ in types}
    return frozenset(found - {""})


def _codecs(config: StepsConfig) -> Iterator[Codec]:
    """Yields the formats of payloads."""
    join = config.window.join if config.window is not None else None
    outputs = [each for each in (config.output, config.failures) if each is not None]
    found = [
        *(each.decode for each in config.inputs.values()),
        *(step.codec for step in config.steps),
        *(lookup.decode for step in config.steps for lookup in step.lookups),
        *(each.encode for each in outputs),
        *([join.decode] if join is not None else []),
    ]
    yield from (codec for codec in found if codec is not None)
