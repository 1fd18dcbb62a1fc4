"""The requirements of a server and a collection for change streams."""

from __future__ import annotations

from typing import Any

from penstock.connectors.mongodb.client import missing_collection
from penstock.connectors.mongodb.config import ConnectionConfig
from penstock.connectors.mongodb.errors import translate_errors
from penstock.core.errors import Permanent

_IMAGES = "changeStreamPreAndPostImages"


def check_server(client: Any, config: ConnectionConfig) -> None:
    """Checks that the server is a replica set or a sharded cluster. Raises Permanent."""
    with translate_errors(config):
        found = client.admin.command("hello")
    if "setName" not in found and found.get("msg") != "isdbgrid":
        raise no_change_streams(config, "it is a standalone server")


def no_change_streams(config: ConnectionConfig, reason: str) -> Permanent:
    """Returns the error of a server without change streams."""
    return Permanent(
        f"{config.address} has no change streams: {reason}", code="change-streams",
        hint="Changes need a replica set, of one member at least: start mongod with --replSet rs0, "
        "and run rs.initiate() once.",
    )  # fmt: skip


def has_images(client: Any, config: ConnectionConfig) -> bool:
    """Returns whether the server stores the documents before and after changes.

    Raises OptionError without the collection, and Permanent for a view.
    """
    name = config.collection
    with translate_errors(config):
        found = [*client[config.database].list_collections(filter={"name": name})]
    collection = next((each for each in found if each["name"] == name), None)
    if collection is None:
        raise missing_collection(client, config)
    if collection.get("type", "collection") != "collection":
        raise Permanent(
            f'"{name}" is a {collection["type"]}, and has no changes', code="unsupported-table",
            hint="Set collection to a collection.",
        )  # fmt: skip
    images = collection.get("options", {}).get(_IMAGES) or {}
    return bool(images.get("enabled"))


def check_key(key: tuple[str, ...], config: ConnectionConfig) -> None:
    """Checks that the primary key is the `_id`. Raises Permanent."""
    if key != (config.id_column,):
        raise Permanent(
            f"the primary_key {', '.join(key)} is not {config.id_column}: deletes have only the "
            "_id",
            code="replica-identity", hint=f"Set primary_key: {config.id_column}.",
        )  # fmt: skip
