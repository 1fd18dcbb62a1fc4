"""Names of connectors and options of Arroyo, as options of Penstock."""

from penstock.spec.script.arroyo.options import translate_options

__all__ = ["translate_options"]
