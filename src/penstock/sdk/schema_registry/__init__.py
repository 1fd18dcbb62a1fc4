"""Schema registry: formats whose payloads carry the ID of their schema."""

from penstock.sdk.schema_registry.client import Draft, Registered, Registry
from penstock.sdk.schema_registry.format import RegistryFormat
from penstock.sdk.schema_registry.options import RegistryOptions

__all__ = ["Draft", "Registered", "Registry", "RegistryFormat", "RegistryOptions"]
