"""Codecs, and the Protobuf options that processors share with them."""

from __future__ import annotations

from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.declarations import Option, Options, options
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.dialects.options.trees import Tree, to_node
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode

AUTH = options(
    Option("type", choices=("basic", "bearer")), "username", "password", "token",
    "Basic:map", "Bearer:map",
)  # fmt: skip
_PLAIN_AUTH = options("username", "password", "token")

PROTOBUF = ("proto_inputs!:list", "proto_includes:list", "message_type!")
CODECS: dict[str, Options] = {
    "json": options("type!", "name"),
    "debezium_json": options("type!", "name"),
    "protobuf": options("type!", "name", *PROTOBUF),
    "schema_registry": options(
        "type!", "name", "registry_url!", "message_type", "auth:map",
        Option("subject", unsupported="the schema of a payload is that of its ID"),
        Option("min_compatibility", unsupported="the registry checks the compatibility"),
    ),
}  # fmt: skip


def read_codec(node: Node | None, subject: str, findings: Findings) -> Tree:
    """Returns the codec of a component as a format of the transform `steps`; None without one."""
    if node is None:
        return None
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        # The short form `codec: json` has no options.
        type_, where = node.written, node.location
        if type_ in {"json", "debezium_json"}:
            return {"type": type_}
    if not isinstance(node, MappingNode):
        findings.error(
            f"the codec of {subject} expects a map with a type", node.location, code="wrong-type"
        )
        return None
    type_node = node.get("type")
    type_ = type_node.written if isinstance(type_node, ScalarNode) else ""
    where = type_node.location if type_node is not None else node.location
    if type_ not in CODECS:
        findings.error(
            f'there is no codec "{type_}"', where, code="unknown-type",
            hint=did_you_mean(type_, list(CODECS)) or f"use one of {', '.join(CODECS)}",
        )  # fmt: skip
        return None
    reading = Reading(node, f"codec {type_}", CODECS[type_], findings)
    if type_ == "protobuf":
        return protobuf(reading)
    if type_ == "schema_registry":
        return {
            "type": "registry",
            "url": reading.get("registry_url"),
            "message": reading.get("message_type"),
            "auth": read_auth(reading),
        }
    return {"type": type_}


def protobuf(reading: Reading) -> Tree:
    """Returns the format of Protobuf options."""
    return {
        "type": "protobuf",
        "files": _files(reading),
        "includes": reading.texts("proto_includes"),
        "message": reading.get("message_type"),
    }


def _files(reading: Reading) -> Tree:
    """Returns the files with definitions, at their place."""
    node = reading.get("proto_inputs")
    texts: list[Tree] = [*reading.texts("proto_inputs")]
    return to_node(texts, node) if node is not None else texts


def read_auth(reading: Reading) -> Tree:
    """Returns credentials, in the forms `type: basic` and `Basic: {...}`; None without any."""
    auth = reading.map("auth", AUTH)
    if auth is None:
        return None
    inner = auth.map("Basic", _PLAIN_AUTH) or auth.map("Bearer", _PLAIN_AUTH) or auth
    if (inner.get("token") is not None) and inner.get("username") is None:
        return {"token": inner.get("token")}
    if inner.get("username") is None or inner.get("password") is None:
        reading.findings.error(
            f"auth of {reading.subject} expects username and password, or token",
            reading.where("auth"), code="missing-option",
        )  # fmt: skip
        return None
    return {"username": inner.get("username"), "password": inner.get("password")}
