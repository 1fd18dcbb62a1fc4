"""How a service is reached: its options, and clients made of them."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from penstock.connectors.aws.faults import faults
from penstock.core.secret import revealed
from penstock.sdk import Config, Duration, Secret
from penstock.sdk.kit.accesskeys import need_whole

CONNECT_SECONDS = 5.0


class AccessConfig(Config):
    region: str | None = None
    """The region; by default the environment's, or `us-east-1` at an `endpoint`."""
    endpoint: str | None = None
    """The address of the server, as in `http://localhost:4566`, if it is not Amazon's."""
    access_key: str | None = None
    """The id of the access key; without it credentials are found as Amazon's own tools do."""
    secret_key: Secret | None = None
    """The secret that belongs to the access key."""
    session_token: Secret | None = None
    """The token of temporary credentials."""
    timeout: Duration = Field(default=10.0, gt=0)
    """How long an answer may take."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        need_whole(self.access_key, self.secret_key, self.session_token)
        return self

    def client(self, service: str, *, wait: float = 0, connections: int = 10) -> Any:
        """A client that tries nothing a second time; an answer may take `wait` longer.

        Raises Permanent where a region or credentials cannot be used.
        """
        import boto3
        from botocore.config import Config as Settings

        session = boto3.Session(region_name=self.region)
        region = session.region_name or ("us-east-1" if self.endpoint else None)
        with faults(service):
            return session.client(
                service,
                region_name=region,
                endpoint_url=self.endpoint,
                aws_access_key_id=self.access_key,
                aws_secret_access_key=revealed(self.secret_key),
                aws_session_token=revealed(self.session_token),
                config=Settings(
                    connect_timeout=min(CONNECT_SECONDS, self.timeout),
                    read_timeout=wait + self.timeout,
                    retries={"total_max_attempts": 1},
                    max_pool_connections=connections,
                ),
            )
