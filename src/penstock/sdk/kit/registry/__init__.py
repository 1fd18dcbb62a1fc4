"""Registries of schemas: payloads that say by which schema they were written."""

from penstock.sdk.kit.registry.client import Draft, Registered, Registry
from penstock.sdk.kit.registry.format import RegistryFormat
from penstock.sdk.kit.registry.options import RegistryOptions

__all__ = ["Draft", "Registered", "Registry", "RegistryFormat", "RegistryOptions"]
