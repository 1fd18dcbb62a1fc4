"""Names of connectors and options of Arroyo, as options of Penstock."""

from penstock.spec.script.arroyo.options import event_time_of, metadata_name, translate_options

__all__ = ["event_time_of", "metadata_name", "translate_options"]
