"""Connections to servers, which inputs and outputs have in common."""

from __future__ import annotations

from urllib.parse import unquote

from penstock.spec.dialects.options.declarations import Option, options
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree

SECURITY = options(
    Option("protocol", choices=("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")),
    "sasl:map", "tls:map",
)  # fmt: skip
_SASL = options(
    Option("mechanism", choices=("plain", "scram-sha-256", "scram-sha-512")), "username", "password"
)
_TLS = options("ca", "cert", "key", "key_password", "insecure_skip_verify:boolean")
MQTT_TLS = options("enabled:boolean", "ca", "client_cert", "client_key")
NATS_AUTH = options("username", "password", "token")
PULSAR_AUTH = options(
    Option("type", required=True, choices=("token", "o_auth2", "oauth2")), "token", "issuer_url",
    "credentials_url", "audience",
)  # fmt: skip
REDIS_MODE = options(
    Option("type", required=True, choices=("single", "cluster")), "url", "urls:list"
)
SSL = options(
    Option("ssl_mode", choices=(
        "disable", "prefer", "require", "verify_ca", "verify_full", "verify_identity",
    )),
    "root_cert", "client_cert", "client_key",
)  # fmt: skip


def kafka_security(reading: Reading) -> dict[str, Tree]:
    """Returns `tls` and `auth` of a connection to Kafka."""
    security = reading.map("security", SECURITY)
    if security is None:
        return {}
    found: dict[str, Tree] = {}
    tls, sasl = security.map("tls", _TLS), security.map("sasl", _SASL)
    if tls is not None:
        verify = None if tls.value("insecure_skip_verify") is None else False
        found["tls"] = {
            "ca": tls.get("ca"), "certificate": tls.get("cert"), "key": tls.get("key"),
            "key_password": tls.get("key_password"),
            "verify": verify if tls.value("insecure_skip_verify") else None,
        }  # fmt: skip
    elif security.text("protocol") in {"ssl", "sasl_ssl"}:
        found["tls"] = True
    if sasl is not None:
        found["auth"] = {
            "mechanism": sasl.text("mechanism", "plain").upper(),
            "username": sasl.get("username"), "password": sasl.get("password"),
        }  # fmt: skip
    return found


def mqtt_connection(reading: Reading) -> dict[str, Tree]:
    """Returns the URL, the credentials and the settings of a connection to MQTT."""
    tls = reading.map("tls", MQTT_TLS)
    has_tls = tls is not None and tls.value("enabled", True) is not False
    host, port = reading.text("host"), reading.text("port", "1883")
    found: dict[str, Tree] = {"url": f"{'mqtts' if has_tls else 'mqtt'}://{host}:{port}"}
    if reading.get("username") is not None:
        found["auth"] = {"username": reading.get("username"), "password": reading.get("password")}
    if tls is not None and has_tls:
        options_ = {
            "ca": tls.get("ca"), "certificate": tls.get("client_cert"),
            "key": tls.get("client_key"),
        }  # fmt: skip
        found["tls"] = options_ if any(options_.values()) else None
    if reading.get("keep_alive") is not None:
        found["keep_alive"] = f"{reading.text('keep_alive')}s"
    qos = reading.value("qos")
    if qos is not None:
        found["qos"] = qos if qos in {0, 1, 2} else 1
    found["client_id"] = reading.get("client_id")
    return found


def nats_connection(reading: Reading) -> dict[str, Tree]:
    """Returns the URL and the credentials of a connection to NATS."""
    urls: list[Tree] = [url.strip() for url in reading.text("url").split(",")]
    found: dict[str, Tree] = {"url": urls if len(urls) > 1 else urls[0]}
    auth = reading.map("auth", NATS_AUTH)
    if auth is not None and auth.get("token") is not None:
        found["auth"] = {"token": auth.get("token")}
    elif auth is not None:
        found["auth"] = {"username": auth.get("username"), "password": auth.get("password")}
    elif len(urls) == 1:
        found["url"], found["auth"] = without_credentials(str(urls[0]))
    return found


def pulsar_connection(reading: Reading) -> dict[str, Tree]:
    """Returns the URL and the credentials of a connection to Pulsar."""
    found: dict[str, Tree] = {"url": reading.text("service_url")}
    auth = reading.map("auth", PULSAR_AUTH)
    if auth is not None and auth.get("token") is not None:
        found["auth"] = {"token": auth.get("token")}
    elif auth is not None:
        found["auth"] = {
            "oauth2": {
                "issuer_url": auth.get("issuer_url"),
                "key_file": auth.text("credentials_url").removeprefix("file://"),
                "audience": auth.get("audience"),
            }
        }
    return found


def redis_connection(reading: Reading) -> dict[str, Tree]:
    """Returns the URL of a connection to Redis."""
    mode = reading.map("mode", REDIS_MODE)
    if mode is None:
        return {}
    if mode.text("type") == "cluster":
        urls: list[Tree] = [*mode.texts("urls")] or [mode.text("url")]
        return {"url": urls, "cluster": True}
    url, auth = without_credentials(mode.text("url") or next(iter(mode.texts("urls")), ""))
    return {"url": url, "auth": auth}


def database_tls(reading: Reading) -> Tree:
    """Returns `tls` of a connection to a database."""
    ssl = reading.map("ssl", SSL)
    if ssl is None:
        return None
    mode = ssl.text("ssl_mode", "prefer")
    if mode in {"disable", "prefer"}:
        return None
    return {
        "ca": ssl.get("root_cert"), "certificate": ssl.get("client_cert"),
        "key": ssl.get("client_key"),
        "verify": mode.startswith("verify"),
        "verify_hostname": mode in {"verify_full", "verify_identity"},
    }  # fmt: skip


def without_credentials(url: str) -> tuple[str, Tree]:
    """Returns a URL without its user and password, and these as `auth`; None without any."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    if not separator or not at:
        return url, None
    name, _, password = user.partition(":")
    auth = {"username": unquote(name) or None, "password": unquote(password) or None}
    return f"{scheme}://{host}{slash}{path}", {key: text for key, text in auth.items() if text}
