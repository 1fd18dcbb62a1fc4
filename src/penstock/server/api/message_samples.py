"""The route of a sample of a topic. It keeps no answer for a repeated request: it has rows."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from penstock.server.api.connections import Options
from penstock.server.api.context import TheAudit, TheConnectionTests
from penstock.server.api.models import Body
from penstock.server.api.security import DataReader, Editor

router = APIRouter(tags=["connections"], prefix="/connections")


class Sample(Body):
    """Options of a source, such as a topic and a format."""

    options: Options = {}
    limit: Annotated[int, Field(ge=1, le=20)] = 20


@router.post("/{name}/sample")
def sample_messages(
    name: str, body: Sample, user: Editor, reader: DataReader, tests: TheConnectionTests,
    audit: TheAudit,
) -> dict[str, Any]:  # fmt: skip
    """Returns the first messages of a topic and their inferred columns. Consumes nothing.

    Requires the right `data`, too. A text has at most 4000 characters; `bytes` is the size of the
    message.
    """
    audit.record(user.name, "sample messages", name, limit=body.limit)
    return tests.sample(name, body.options, body.limit, user)
