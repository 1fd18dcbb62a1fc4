"""Hybrid: a source that reads other sources one after another."""

from penstock.connectors.hybrid.source import HybridSource

__all__ = ["HybridSource"]
