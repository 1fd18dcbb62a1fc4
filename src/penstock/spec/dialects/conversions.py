"""Files of other tools that are no pipelines, and can be converted into parts of one."""

from penstock.spec.dialects.arroyo import exports as arroyo


def convert_export(path: str) -> str | None:
    """Returns the statements or the connections of an export; None for other files.

    Raises SpecError.
    """
    return arroyo.to_text(path) if arroyo.is_export(path) else None
