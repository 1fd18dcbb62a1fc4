"""Names of connectors and options of Arroyo, as options of Penstock."""

from penstock.spec.script.arroyo.options import metadata_name, translate_options

__all__ = ["metadata_name", "translate_options"]
