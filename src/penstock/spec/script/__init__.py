"""SQL scripts: statements that define sources, transforms and sinks, read as a document."""

from penstock.spec.script.document import parse_script, parse_valid_part

__all__ = ["parse_script", "parse_valid_part"]
