"""Routes of pipelines: list, create, check, apply, versions, start and stop."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Response

from penstock.core.errors import UserError
from penstock.server.api.context import TheAudit, TheChanges, TheViews, read_at_once
from penstock.server.api.idempotency import IdempotentRoute
from penstock.server.api.models import (
    Application,
    Draft,
    Fresh,
    NewDraft,
    NewPipeline,
    Number,
    RollBack,
)
from penstock.server.api.security import DataReader, Editor, Operator, Viewer

router = APIRouter(tags=["pipelines"], route_class=IdempotentRoute)
PATH = "/pipelines/{id}"


IfMatch = Annotated[str | None, Header(max_length=20)]
Since = Annotated[
    str | None,
    Query(
        pattern=r"^\d{4}-\d\d-\d\d(T[\d:.]{5,20}Z?)?$", max_length=40,
        description="A time in UTC, as 2026-01-31T08:00:00Z.",
    ),
]  # fmt: skip


def _base(base: int | None, if_match: str | None) -> int | None:
    """Returns the version that a change was made from. Raises UserError for another ETag."""
    if if_match is None or if_match == "*":
        return base
    number = if_match.removeprefix("W/").strip('"')
    if not number.isascii() or not number.isdigit() or base not in (None, int(number)):
        raise UserError(
            f"If-Match: {if_match} is not the version of a pipeline", code="invalid-request",
            hint="Send the header ETag of the pipeline.",
        )  # fmt: skip
    return int(number)


@router.get("/pipelines")
def list_pipelines(user: Viewer, views: TheViews) -> list[dict[str, Any]]:
    """Returns all pipelines with their health, worst first."""
    return [asdict(each) for each in views.summaries()]


@router.post("/pipelines", status_code=201)
def create_pipeline(
    body: NewPipeline, user: Editor, views: TheViews, changes: TheChanges, audit: TheAudit
) -> dict[str, Any]:
    """Creates a pipeline from a valid text. It does not run yet."""
    id = changes.create(body.name, body.text, user, body.note)
    audit.record(user.name, "create", id, name=body.name)
    return asdict(views.summary(id))


@router.post("/check")
def check_new_pipeline(body: NewDraft, user: Editor, changes: TheChanges) -> dict[str, Any]:
    """Checks a text of a pipeline that does not exist yet."""
    return changes.check_new(body.name, body.text, body.level, user)


@router.get(PATH)
async def show_pipeline(
    id: str, response: Response, user: Viewer, views: TheViews
) -> dict[str, Any]:
    """Returns a pipeline with its nodes, queries, text and metrics.

    The header `ETag` has its version, for the header `If-Match` of `apply`.
    """
    detail = await read_at_once(lambda: views.detail(id), known=views.is_known)
    response.headers["ETag"] = f'"{detail["version"] or 0}"'
    return detail


@router.delete(PATH, status_code=204)
def delete_pipeline(
    id: str, user: Editor, views: TheViews, changes: TheChanges, audit: TheAudit
) -> None:
    """Deletes a stopped pipeline that the API has created, or whose file is gone."""
    name = views.summary(id).name
    changes.delete(id)
    audit.record(user.name, "delete", id, name=name)


@router.post(PATH + "/check")
def check_pipeline(id: str, body: Draft, user: Editor, changes: TheChanges) -> dict[str, Any]:
    """Checks a text of a pipeline: errors, warnings, columns, and changes of its state."""
    return changes.check(id, body.text, body.level, user)


@router.post(PATH + "/apply")
def apply_text(
    id: str, body: Application, user: Editor, changes: TheChanges, audit: TheAudit,
    if_match: IfMatch = None,
) -> dict[str, Any]:  # fmt: skip
    """Applies a text as a new version. A running pipeline restarts; its state continues.

    `If-Match` means the same as `base`.
    """
    base = _base(body.base, if_match)
    version = changes.apply(id, body.text, user, note=body.note, fresh=body.fresh, base=base)
    audit.record(user.name, "apply", id, version=version.number, fresh=body.fresh)
    return asdict(version)


@router.get(PATH + "/versions")
def list_versions(
    id: str, user: Viewer, views: TheViews, before: Number | None = None,
    limit: int = Query(100, ge=1, le=1000),
) -> list[dict[str, Any]]:  # fmt: skip
    """Returns the last versions of a pipeline, or those before a number, last first."""
    return [asdict(version) for version in views.versions(id, limit, before)]


@router.get(PATH + "/versions/{number}")
def show_version(id: str, number: Number, user: Viewer, views: TheViews) -> dict[str, Any]:
    """Returns a version of a pipeline."""
    return asdict(views.version(id, number))


@router.post(PATH + "/versions/{number}/roll-back")
def roll_back(
    id: str, number: Number, body: RollBack, user: Editor, changes: TheChanges, audit: TheAudit,
    if_match: IfMatch = None,
) -> dict[str, Any]:  # fmt: skip
    """Applies the text of an earlier version as a new one."""
    base = _base(body.base, if_match)
    version = changes.roll_back(id, number, user, fresh=body.fresh, base=base)
    audit.record(user.name, "roll back", id, to=number, version=version.number)
    return asdict(version)


@router.post(PATH + "/start")
def start_pipeline(
    id: str, body: Fresh, user: Operator, views: TheViews, changes: TheChanges, audit: TheAudit
) -> dict[str, Any]:
    """Starts a pipeline."""
    changes.start(id, user.name, fresh=body.fresh)
    audit.record(user.name, "start", id, fresh=body.fresh)
    return asdict(views.summary(id))


@router.post(PATH + "/stop")
def stop_pipeline(
    id: str, user: Operator, views: TheViews, changes: TheChanges, audit: TheAudit
) -> dict[str, Any]:
    """Stops a pipeline after its current batch.

    A run on another machine with its state in an object store is requested to stop, too.
    """
    changes.stop(id, user.name)
    audit.record(user.name, "stop", id)
    changes.stop_elsewhere(id)
    return asdict(views.summary(id))


@router.post(PATH + "/restart")
def restart_pipeline(
    id: str, body: Fresh, user: Operator, views: TheViews, changes: TheChanges, audit: TheAudit
) -> dict[str, Any]:
    """Stops a pipeline after its current batch, and starts it again."""
    changes.restart(id, user.name, fresh=body.fresh)
    audit.record(user.name, "restart", id, fresh=body.fresh)
    return asdict(views.summary(id))


@router.get(PATH + "/runs")
async def list_runs(
    id: str, user: Viewer, views: TheViews,
    before: Annotated[str | None, Query(max_length=100)] = None,
    limit: int = Query(50, ge=1, le=500),
) -> list[dict[str, Any]]:  # fmt: skip
    """Returns the last runs of a pipeline, or those before a run, last first, with their errors.

    `before` is the ID of the last run of the page before.
    """
    read = partial(views.runs, id, before=before, limit=limit)
    return await read_at_once(read, known=views.knows_runs(id))


@router.get(PATH + "/logs")
def show_logs(
    id: str, user: DataReader, views: TheViews, run: str | None = None,
    level: Literal["debug", "info", "warning", "error", "critical"] = "info",
    text: str | None = None, since: Since = None,
    limit: int = Query(500, ge=1, le=5000),
) -> list[dict[str, Any]]:  # fmt: skip
    """Returns the last lines of the log of a pipeline, oldest first."""
    return views.logs(id, run=run, level=level, text=text, since=since, limit=limit)
