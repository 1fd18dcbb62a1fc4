"""The events of the Nexmark benchmark."""

from penstock.connectors.nexmark.source import NexmarkSource, NexmarkSourceConfig

__all__ = ["NexmarkSource", "NexmarkSourceConfig"]
