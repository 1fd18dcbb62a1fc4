"""What may stand as a topic (MQTT 5.0, section 4.7)."""

from __future__ import annotations

LONGEST = 65_535


def name_mistake(topic: str) -> str | None:
    """Why nothing can be published to it; None if it can."""
    if not topic or len(topic.encode()) > LONGEST:
        return "a topic has 1 to 65,535 bytes"
    if "\0" in topic:
        return "a topic has no null character"
    if "+" in topic or "#" in topic:
        return "a topic to publish to has no + and no #"
    return None


def filter_mistake(topic: str) -> str | None:
    """Why nobody can subscribe to it; None if one can."""
    levels = topic.split("/")
    if any("#" in level for level in levels[:-1]) or ("#" in levels[-1] and levels[-1] != "#"):
        return "# is the last level, alone: a/b/#"
    if any("+" in level and level != "+" for level in levels):
        return "+ is a level alone: a/+/c"
    return name_mistake(topic.replace("+", "x").replace("#", "x"))
