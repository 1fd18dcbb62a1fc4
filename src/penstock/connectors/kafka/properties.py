"""Properties of librdkafka for the options of a connection."""

from __future__ import annotations

from typing import Any

from penstock.connectors.kafka.auth import SaslAuth
from penstock.connectors.kafka.config import ConnectionConfig
from penstock.core.secret import revealed
from penstock.sdk.network.tls import Tls


def client_properties(config: ConnectionConfig) -> dict[str, Any]:
    """Returns the properties of every client of a cluster, without `properties` of the user."""
    tls, auth = config.resolved_tls, config.auth
    transport = "SSL" if tls is not None else "PLAINTEXT"
    return {
        "bootstrap.servers": config.address,
        "security.protocol": f"SASL_{transport}" if auth is not None else transport,
        "client.id": "penstock",
        "log_level": 0,
        **(_tls_properties(tls) if tls is not None else {}),
        **(_sasl_properties(auth) if auth is not None else {}),
    }


def _tls_properties(tls: Tls) -> dict[str, Any]:
    files: dict[str, Any] = {
        "ssl.ca.location": tls.ca,
        "ssl.certificate.location": tls.certificate,
        "ssl.key.location": tls.key,
        "ssl.key.password": revealed(tls.key_password),
    }
    properties = {name: value for name, value in files.items() if value is not None}
    if not tls.verify:
        properties["enable.ssl.certificate.verification"] = False
    if not tls.verify_hostname:
        properties["ssl.endpoint.identification.algorithm"] = "none"
    return properties


def _sasl_properties(auth: SaslAuth) -> dict[str, Any]:
    password = revealed(auth.password)
    if auth.mechanism == "AWS_MSK_IAM":
        return {"sasl.mechanism": "OAUTHBEARER"}
    properties: dict[str, Any] = {"sasl.mechanism": auth.mechanism}
    if auth.mechanism != "OAUTHBEARER":
        return {**properties, "sasl.username": auth.username, "sasl.password": password}
    if auth.token_url is not None:
        properties |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": auth.token_url,
            "sasl.oauthbearer.client.id": auth.username,
            "sasl.oauthbearer.client.secret": password,
        }
    if auth.scope is not None:
        properties["sasl.oauthbearer.scope"] = auth.scope
    if auth.extensions:
        extensions = ",".join(f"{name}={value}" for name, value in auth.extensions.items())
        properties["sasl.oauthbearer.extensions"] = extensions
    return properties
