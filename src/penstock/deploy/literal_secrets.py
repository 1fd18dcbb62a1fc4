"""Secrets that a pipeline file contains itself, which manifests would show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr

from penstock.core.errors import PenstockError, UserError, raise_all
from penstock.core.known_secrets import remember_secret
from penstock.core.location import Location
from penstock.core.secret import redact_urls
from penstock.deploy.values import texts
from penstock.plan.model import Plan
from penstock.plan.options import options, options_of
from penstock.plan.state_location import STORAGE_ROUTE
from penstock.spec.location_text import dotted

_MAPS = ("properties", "headers", "spark")
"""The options whose values are maps of any names."""
_SECRET_NAME = re.compile(
    r"passw|secret|token|(api|access|account).?key|authorization|credential|jaas", re.IGNORECASE
)
_REFERENCE = re.compile(r"(file|path|location|url|uri|provider|class|id)\Z", re.IGNORECASE)
"""The ends of names whose value refers to a secret or is public."""


def check_literal_secrets(plan: Plan) -> None:
    """Raises the errors of all secrets that are in the files and not in variables."""
    found = [*_options_with_secrets(plan), *_properties_with_secrets(plan)]
    raise_all([*found, *_urls_with_passwords(plan)])


def _options_with_secrets(plan: Plan) -> Iterator[PenstockError]:
    source_map, storage = plan.pipeline.source_map, plan.location.storage
    of_state = options_of(storage, STORAGE_ROUTE) if storage is not None else ()
    for route, _, value in (*(option for _, option in options(plan)), *of_state):
        found = source_map.find(route)
        if isinstance(value, SecretStr) and found is not None and not found.substitutions:
            remember_secret(value.get_secret_value())
            yield _error(f"{dotted(route)} is a secret", source_map.value(route))


def _properties_with_secrets(plan: Plan) -> Iterator[PenstockError]:
    """Yields the errors of properties, headers and settings of Spark, by their names."""
    source_map = plan.pipeline.source_map
    for value in texts(source_map):
        above = value.route[-2] if len(value.route) > 1 else None
        is_secret = _SECRET_NAME.search(value.option) and not _REFERENCE.search(value.option)
        if above in _MAPS and is_secret and not value.expressions:
            remember_secret(value.text)
            yield _error(f"{dotted(value.route)} is a secret", source_map.value(value.route))


def _urls_with_passwords(plan: Plan) -> Iterator[PenstockError]:
    for name in plan.pipeline.source_map.files:
        lines = Path(name).read_text("utf-8", "replace").splitlines()
        for number, line in enumerate(lines, 1):
            if redact_urls(line) != line:
                where = Location(name, number, 1, len(line), line)
                yield _error("a URL contains a password", where)


def _error(message: str, where: Location) -> UserError:
    return UserError(
        f"{message} that the manifests would show", code="secret-in-file", where=where,
        hint="write ${NAME}, and set the environment variable NAME for runs on this machine",
    )  # fmt: skip
