"""Names of connectors and options of Arroyo, as options of Penstock, and its queries."""

from penstock.spec.script.arroyo.files import EVENT_TIME, PARTITION_TIME, has_time_pattern
from penstock.spec.script.arroyo.options import is_arroyo_table, metadata_name, translate_options
from penstock.spec.script.arroyo.queries import translate_query
from penstock.spec.script.arroyo.watermarks import DELAY, declared_bound, declared_watermark

__all__ = [
    "DELAY",
    "EVENT_TIME",
    "PARTITION_TIME",
    "declared_bound",
    "declared_watermark",
    "has_time_pattern",
    "is_arroyo_table",
    "metadata_name",
    "translate_options",
    "translate_query",
]
