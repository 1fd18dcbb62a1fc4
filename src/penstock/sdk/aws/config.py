"""Options that the connectors of AWS services share."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from penstock.core.units import PositiveDuration
from penstock.sdk.config import Config
from penstock.sdk.network.auth import AwsAuth
from penstock.sdk.network.tls import Tls, TlsOption, check_supported, resolve_tls


class AwsConfig(Config):
    region: str | None = None
    """The region. By default the region of the environment, or `us-east-1` with `endpoint_url`."""
    endpoint_url: str | None = None
    """The URL of the service if it is not hosted by AWS: `http://localhost:4566`."""
    auth: AwsAuth | None = None
    """The access key. By default the credentials come from the default credential chain of the
    AWS SDK."""
    tls: TlsOption = None
    """TLS settings: the CA certificate and the client certificate. By default TLS is used unless
    `endpoint_url` begins with `http://`."""
    timeout: PositiveDuration = 10.0
    """The longest time to wait for a response."""

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        check_supported(self.resolved_tls, "the AWS SDK")
        return self

    @property
    def resolved_tls(self) -> Tls | None:
        """The TLS settings of the connection; None without TLS."""
        scheme = self.endpoint_url is None or not self.endpoint_url.startswith("http://")
        return resolve_tls(self.tls, scheme)
