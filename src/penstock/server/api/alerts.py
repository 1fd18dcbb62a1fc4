"""Routes of alerts: rules, channels and the history."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field, model_validator

from penstock.core.errors import UserError
from penstock.runtime.state.directory import now
from penstock.server.alerts.conditions import RuleKind
from penstock.server.alerts.webhook import checked_url
from penstock.server.api.context import TheAlerts, TheAudit, TheDelivery
from penstock.server.api.models import Body, Name, Number, Password
from penstock.server.api.security import Admin, Editor, Operator, Viewer
from penstock.server.store.alerts import Channel, Rule

router = APIRouter(tags=["alerts"], prefix="/alerts")
Text = Annotated[str, Field(min_length=1, max_length=500)]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


class RuleBody(Body):
    """A rule. `pipelines` are IDs; null is all. `threshold` and `minutes` as of its kind."""

    kind: RuleKind
    pipelines: Annotated[list[Text], Field(max_length=1000)] | None = None
    threshold: Annotated[float, Field(ge=0, le=1e15)] = 0
    minutes: Annotated[float, Field(ge=0, le=100_000)] = 5
    channels: Annotated[list[Name], Field(max_length=20)] = []
    enabled: bool = True


class Silence(Body):
    """The end of the silence in UTC; null ends it now."""

    until: Time | None


class Webhook(Body):
    """A URL that receives signed POST requests."""

    kind: Literal["webhook"]
    url: Text


class Mail(Body):
    """A mail server, and the addresses of a message."""

    kind: Literal["email"]
    host: Text
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    tls: Literal["starttls", "tls", "none"] = "starttls"
    username: Text | None = None
    sender: Text
    to: Annotated[list[Text], Field(min_length=1, max_length=50)]

    @model_validator(mode="after")
    def _check_addresses(self) -> Mail:
        for address in (self.sender, *self.to):
            if "@" not in address or any(each.isspace() for each in address):
                raise ValueError(f"{address[:80]!r} is no e-mail address")
        return self


class ChannelBody(Body):
    """A channel. Without `secret` that of an existing channel of the same address remains."""

    options: Annotated[Webhook | Mail, Field(discriminator="kind")]
    secret: Password | None = None


@router.get("")
def list_alerts(
    user: Viewer, alerts: TheAlerts, before: Number | None = None, pipeline: str | None = None,
    limit: int = Query(100, ge=1, le=1000),
) -> list[dict[str, Any]]:  # fmt: skip
    """Returns alerts, open and resolved, last first."""
    return alerts.history(limit=limit, before=before, pipeline=pipeline)


@router.get("/rules")
def list_rules(user: Viewer, alerts: TheAlerts) -> list[dict[str, Any]]:
    """Returns all rules."""
    return [rule.__dict__ for rule in alerts.rules()]


@router.put("/rules/{name}")
def set_rule(
    name: Name, body: RuleBody, user: Editor, alerts: TheAlerts, audit: TheAudit
) -> dict[str, Any]:
    """Creates or replaces a rule."""
    rule = Rule(
        name, body.kind, None if body.pipelines is None else tuple(body.pipelines),
        body.threshold, body.minutes, tuple(body.channels), body.enabled, None, user.name, now(),
    )  # fmt: skip
    alerts.set_rule(rule)
    audit.record(user.name, "set rule", name, kind=body.kind)
    return rule.__dict__


@router.post("/rules/{name}/silence")
def silence_rule(
    name: str, body: Silence, user: Operator, alerts: TheAlerts, audit: TheAudit
) -> dict[str, Any]:
    """Sends no messages of a rule until a time. Its alerts are recorded."""
    rule = next((each for each in alerts.rules() if each.name == name), None)
    if rule is None:
        raise UserError(f'there is no rule "{name}"', code="no-rule")
    rule = replace(rule, silenced_until=body.until)
    alerts.set_rule(rule)
    audit.record(user.name, "silence rule", name, until=body.until)
    return rule.__dict__


@router.delete("/rules/{name}", status_code=204)
def delete_rule(name: str, user: Editor, alerts: TheAlerts, audit: TheAudit) -> None:
    """Deletes a rule. Its open alerts are resolved."""
    alerts.remove_rule(name)
    audit.record(user.name, "delete rule", name)


@router.get("/channels")
def list_channels(user: Editor, alerts: TheAlerts) -> list[dict[str, Any]]:
    """Returns all channels, without their secrets."""
    return [_shown(channel) for channel in alerts.channels()]


@router.put("/channels/{name}")
def set_channel(
    name: Name, body: ChannelBody, user: Admin, alerts: TheAlerts, audit: TheAudit
) -> dict[str, Any]:
    """Creates or replaces a channel."""
    options = body.options.model_dump(exclude={"kind"})
    if isinstance(body.options, Webhook):
        checked_url(body.options.url)
    else:
        options["from"] = options.pop("sender")
    known, secret = alerts.channel(name), body.secret
    if secret is None and known is not None and dict(known.options) == options:
        secret = known.secret
    channel = Channel(name, body.options.kind, options, secret, user.name, now())
    alerts.set_channel(channel)
    audit.record(user.name, "set channel", name, kind=channel.kind)
    return _shown(channel)


@router.delete("/channels/{name}", status_code=204)
def delete_channel(name: str, user: Admin, alerts: TheAlerts, audit: TheAudit) -> None:
    """Deletes a channel that no rule has."""
    alerts.remove_channel(name)
    audit.record(user.name, "delete channel", name)


@router.post("/channels/{name}/test", status_code=204)
def test_channel(
    name: str, user: Admin, alerts: TheAlerts, delivery: TheDelivery, audit: TheAudit
) -> None:
    """Sends a message of a test, and waits for its delivery."""
    channel = alerts.channel(name)
    if channel is None:
        raise UserError(f'there is no channel "{name}"', code="no-channel")
    audit.record(user.name, "test channel", name)
    delivery.test(channel)


def _shown(channel: Channel) -> dict[str, Any]:
    return {
        **channel.__dict__,
        "options": dict(channel.options),
        "secret": {"set": channel.secret is not None},
    }
