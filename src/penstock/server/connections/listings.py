"""Options of a connector whose values the server lists: tables, topics and the like."""

from __future__ import annotations

from penstock.core.errors import MissingExtra, PlanError


def listed_options(type_: str) -> list[str]:
    """Returns `table`, or options such as `topic`; none for a type without such a source."""
    from penstock.sdk import registry
    from penstock.sdk.database.listing import ListedSource
    from penstock.sdk.messages.listing import ListedTopics

    try:
        component = registry.find("source", type_)
    except (PlanError, MissingExtra):
        return []
    if issubclass(component, ListedSource):
        return ["table"]
    return list(component.listed_options) if issubclass(component, ListedTopics) else []
