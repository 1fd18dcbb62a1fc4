"""A counter at a rate."""

from penstock.connectors.impulse.source import ImpulseSource, ImpulseSourceConfig

__all__ = ["ImpulseSource", "ImpulseSourceConfig"]
