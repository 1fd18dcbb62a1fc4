"""Hashes of the secrets in the fingerprint of a plan."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.core.known_secrets import SHORTEST
from penstock.plan.model import Plan

HashSecret = Callable[[str], str]
KEYED_HASH = "hmac-sha256"
_HASHED = ("config", "format", "watermark")
_EXPRESSION = re.compile(r"\$\{.*secret:", re.DOTALL)


def secrets_of(plan: Plan) -> list[str]:
    """Returns the secrets in the values of a plan, longest first, without short ones."""
    root = plan.pipeline.source_map.find(())
    secrets = {
        part.value
        for part in (root.substitutions if root is not None else ())
        if part.secret
        and _EXPRESSION.match(part.expression)
        and len(part.value.strip()) >= SHORTEST
    }
    return sorted(secrets, key=lambda secret: (-len(secret), secret))


def hash_secrets(definition: dict[str, Any], secrets: list[str], hash_secret: HashSecret) -> None:
    """Replaces secrets within the options and watermarks of nodes by their hashes."""
    if not secrets:
        return
    pattern = re.compile("|".join(map(re.escape, secrets)))

    def hashed(value: Any) -> Any:
        if isinstance(value, str):
            is_hash = value.startswith((f"{KEYED_HASH}:", "sha1:"))
            return value if is_hash else pattern.sub(lambda match: hash_secret(match[0]), value)
        if isinstance(value, dict):
            return {name: hashed(item) for name, item in value.items()}
        return [hashed(item) for item in value] if isinstance(value, list) else value

    for query in definition["queries"].values():
        for node in (*query["nodes"].values(), *query["stateless"].values()):
            node.update({part: hashed(node[part]) for part in _HASHED if part in node})


def secret_hash(key: bytes | None) -> HashSecret:
    """Returns the hash with a key; without a key that of earlier versions."""
    return _unkeyed_hash if key is None else partial(_keyed_hash, key)


def _keyed_hash(key: bytes, secret: str) -> str:
    return f"{KEYED_HASH}:" + hmac.new(key, secret.encode(), hashlib.sha256).hexdigest()


def _unkeyed_hash(secret: str) -> str:
    return "sha1:" + hashlib.sha1(secret.encode()).hexdigest()
