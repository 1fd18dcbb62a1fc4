"""Names of connectors and options of Arroyo, as options of Penstock, and its queries."""

from penstock.spec.script.arroyo.options import is_arroyo_table, metadata_name, translate_options
from penstock.spec.script.arroyo.queries import translate_query
from penstock.spec.script.arroyo.watermarks import DELAY, declared_bound, declared_watermark

__all__ = [
    "DELAY",
    "declared_bound",
    "declared_watermark",
    "is_arroyo_table",
    "metadata_name",
    "translate_options",
    "translate_query",
]
