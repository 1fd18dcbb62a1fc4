"""Names of connectors and options of Arroyo, as options of Penstock, and its queries."""

from penstock.spec.script.arroyo.options import is_arroyo_table, metadata_name, translate_options
from penstock.spec.script.arroyo.queries import translate_query

__all__ = ["is_arroyo_table", "metadata_name", "translate_options", "translate_query"]
