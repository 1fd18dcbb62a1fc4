"""Python functions of Arroyo: the module of their decorators, and the names of their options."""

MODULE = "arroyo_udf"
SAME = {"allowed_in_flight": "concurrency"}
"""Options, and those of Penstock with the same meaning."""
OPPOSITE = {"unordered": "ordered"}
"""Options, and those of Penstock with the opposite meaning."""
