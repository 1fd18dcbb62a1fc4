"""Secrets that a pipeline file contains itself, which manifests would show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr

from penstock.core.errors import PenstockError, UserError, raise_all
from penstock.core.location import Location
from penstock.core.secret import redact_urls
from penstock.deploy.options import options
from penstock.plan.model import Plan


def check_literal_secrets(plan: Plan) -> None:
    """Raises the errors of all secrets that are in the files and not in variables."""
    raise_all([*_options_with_secrets(plan), *_urls_with_passwords(plan)])


def _options_with_secrets(plan: Plan) -> Iterator[PenstockError]:
    source_map = plan.pipeline.source_map
    for _, (route, _, value) in options(plan):
        found = source_map.find(route)
        if isinstance(value, SecretStr) and found is not None and not found.substitutions:
            yield _error(f"{'.'.join(map(str, route))} is a secret", source_map.value(route))


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
