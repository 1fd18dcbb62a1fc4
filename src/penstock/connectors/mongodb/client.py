"""Clients of MongoDB, and their BSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time
from functools import cache
from typing import Any

from penstock.connectors.mongodb.auth import auth_options
from penstock.connectors.mongodb.config import SRV, ConnectionConfig
from penstock.connectors.mongodb.errors import translate_errors
from penstock.core.errors import OptionError, Permanent
from penstock.core.secret import revealed
from penstock.core.text import did_you_mean
from penstock.sdk.columns.scalar_parsing import exact_double
from penstock.sdk.database.errors import ServerErrors


def create_client(config: ConnectionConfig) -> Any:
    """Returns a client, which connects when it is used.

    Raises Permanent for wrong files of TLS, Transient without a response of the DNS, and
    MissingExtra.
    """
    import pymongo
    from dns.exception import DNSException
    from pymongo.errors import ConfigurationError

    auth, tls = config.auth, config.tls_settings
    options: dict[str, Any] = {}
    if auth is not None:
        options |= auth_options(auth)
    if tls is not None:
        tls.check_files()
        options |= {
            "tls": True,
            "tlsCAFile": tls.ca,
            "tlsCertificateKeyFile": tls.certificate,
            "tlsCertificateKeyFilePassword": revealed(tls.key_password),
            "tlsAllowInvalidCertificates": not tls.verify,
            "tlsAllowInvalidHostnames": not (tls.verify and tls.verify_hostname),
        }
    milliseconds = round(config.connect_seconds * 1000)
    try:
        return pymongo.MongoClient(
            host=f"{SRV}://{config.host}" if config.is_in_dns else config.host,
            port=config.port,
            serverSelectionTimeoutMS=milliseconds,
            connectTimeoutMS=milliseconds,
            socketTimeoutMS=round(config.timeout * 1000),
            appname="penstock",
            **{name: value for name, value in options.items() if value is not None},
        )
    except (ConfigurationError, OSError) as error:
        if isinstance(error.__cause__, DNSException):
            hint = "Check the option url, and the DNS servers of this machine."
            raise ServerErrors(config.address).unreachable(str(error), hint) from None
        raise Permanent(
            "cannot use the certificate files of tls", code="tls", detail=str(error),
            hint="Set tls.ca to a PEM file, and tls.certificate and tls.key to one PEM file.",
        ) from None  # fmt: skip


@cache
@cache
def codec_options() -> Any:
    """Returns the options of BSON: times in UTC, and dates that Python does not have as numbers."""
    from bson.binary import UuidRepresentation
    from bson.codec_options import CodecOptions, DatetimeConversion

    return CodecOptions(
        tz_aware=True,
        uuid_representation=UuidRepresentation.STANDARD,
        datetime_conversion=DatetimeConversion.DATETIME_AUTO,
    )


@cache
def row_codec_options() -> Any:
    """Returns the options of BSON for rows, whose times in UTC have no time zone.

    The time zones of pymongo are Python code that Arrow would call for each time.
    """
    return codec_options().with_options(tz_aware=False)


@cache
def raw_codec_options() -> Any:
    """Returns the options of BSON for documents that are not decoded."""
    from bson.raw_bson import RawBSONDocument

    return codec_options().with_options(document_class=RawBSONDocument)


@cache
def json_options(*, canonical: bool = False) -> Any:
    """Returns the options of Extended JSON, whose canonical form keeps the types of numbers."""
    from bson import json_util
    from bson.binary import UuidRepresentation
    from bson.codec_options import DatetimeConversion

    mode = json_util.JSONMode.CANONICAL if canonical else json_util.JSONMode.RELAXED
    return json_util.JSONOptions(
        json_mode=mode,
        tz_aware=True,
        uuid_representation=UuidRepresentation.STANDARD,
        datetime_conversion=DatetimeConversion.DATETIME_AUTO,
    )


def to_json(value: Any, *, canonical: bool = False) -> str:
    """Returns a value of BSON as Extended JSON."""
    from bson import json_util

    return json_util.dumps(
        value, json_options=json_options(canonical=canonical), ensure_ascii=False
    )


def from_json(text: str) -> Any:
    """Returns the value of Extended JSON. Raises ValueError or TypeError."""
    from bson import json_util
    from bson.errors import BSONError

    try:
        return json_util.loads(text, json_options=json_options(), parse_float=exact_double)
    except BSONError as error:
        raise ValueError(str(error)) from None


def option_value(option: str, value: Any) -> Any:
    """Returns the BSON of an option with values of YAML. Raises OptionError."""
    try:
        return from_json(json.dumps(value, default=_json_time))
    except (ValueError, TypeError, OverflowError) as error:
        raise OptionError.of(
            option, message=f"{option} is not valid Extended JSON: {error}", code="invalid-option",
            hint='Write values of BSON as maps, as {$oid: "65f0c4045cb311e7907ba600"}.',
        ) from None  # fmt: skip


def _json_time(value: Any) -> Mapping[str, str]:
    if isinstance(value, date):
        at = value if isinstance(value, datetime) else datetime.combine(value, time.min)
        return {"$date": at.isoformat() + ("" if at.tzinfo else "Z")}
    raise TypeError(f"unexpected value {value!r}")


def collection_exists(client: Any, config: ConnectionConfig) -> bool:
    """Returns whether the collection exists. Raises Transient or Permanent."""
    return config.collection in _names(client, config)


def missing_collection(client: Any, config: ConnectionConfig, hint: str = "") -> OptionError:
    """Returns the error of a collection that does not exist."""
    similar = did_you_mean(config.collection, _names(client, config))
    return OptionError.of(
        "collection", message=f'there is no collection "{config.collection}"',
        code="unknown-table", hint="; ".join(filter(None, [similar, hint])) or None,
    )  # fmt: skip


def _names(client: Any, config: ConnectionConfig) -> list[str]:
    with translate_errors(config):
        names: list[str] = client[config.database].list_collection_names()
        return sorted(names)
