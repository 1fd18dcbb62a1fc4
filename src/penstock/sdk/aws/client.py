"""Clients of AWS services."""

from __future__ import annotations

from functools import cache
from typing import Any

from penstock.core.secret import revealed
from penstock.sdk.aws.config import AwsConfig
from penstock.sdk.aws.errors import translate_errors
from penstock.sdk.network.auth import AwsAuth
from penstock.sdk.network.cut_responses import check_whole
from penstock.sdk.network.tls import Tls

CONNECT_TIMEOUT = 5.0
"""The longest time to wait for a connection, in seconds."""


class AwsClient:
    """A client of one service, usable by several threads. It does not retry by itself.

    `wait` is added to the timeout of a response. Creation raises Permanent where the region or
    the credentials are invalid. Calls raise Transient or Permanent.
    """

    def __init__(
        self, config: AwsConfig, service: str, *, wait: float = 0, connections: int = 10
    ) -> None:
        from botocore.config import Config as Settings
        from botocore.exceptions import ConnectionClosedError
        from botocore.session import Session

        def check_response(response_dict: dict[str, Any], **_: Any) -> None:
            try:
                check_whole(response_dict["headers"], len(response_dict["body"]))
            except OSError as error:
                raise ConnectionClosedError(
                    error=error, request=None, endpoint_url=config.endpoint_url
                ) from error

        self._service = service
        auth, tls = config.auth or AwsAuth.model_construct(), config.resolved_tls
        if tls is not None:
            tls.check_files()
        session = Session()
        session.register_component("data_loader", _service_models())
        default_region = "us-east-1" if config.endpoint_url else None
        with translate_errors(service):
            region = config.region or session.get_config_variable("region")
            self._client = session.create_client(
                service,
                region_name=region or default_region,
                endpoint_url=config.endpoint_url,
                aws_access_key_id=auth.access_key,
                aws_secret_access_key=revealed(auth.secret_key),
                aws_session_token=revealed(auth.session_token),
                verify=_verify(tls),
                config=Settings(
                    connect_timeout=min(CONNECT_TIMEOUT, config.timeout),
                    read_timeout=wait + config.timeout,
                    retries={"total_max_attempts": 1},
                    max_pool_connections=connections,
                    client_cert=(tls.certificate, tls.key) if tls and tls.certificate else None,
                ),
            )
            self._client.meta.events.register("before-parse", check_response)

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Returns the response of the service to an operation."""
        with translate_errors(self._service):
            response: dict[str, Any] = getattr(self._client, operation)(**parameters)
        return response

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()


@cache
def _service_models() -> Any:
    """Returns the loader of the models of services. A model takes longer to read than a request."""
    from botocore.loaders import create_loader

    return create_loader()


def _verify(tls: Tls | None) -> bool | str | None:
    """Returns the parameter `verify` of boto3. None selects the CA certificates of the SDK."""
    if tls is not None and not tls.verify:
        return False
    return tls.ca if tls is not None else None
