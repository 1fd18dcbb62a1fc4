"""Databases to which the identity of the machine logs in, without Spark.

PostgreSQL and MariaDB have the tokens as passwords. FerretDB does not support tokens.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from pydantic import ValidationError
from pymongo.auth_oidc_shared import OIDCCallbackContext

from cloud_metadata import (
    ACCESS_KEY,
    ASSERTION,
    AZURE_RESOURCES,
    SECRET_KEY,
    SESSION,
    Metadata,
    entra,
    metadata,
)
from penstock.connectors.jdbc import JdbcSource
from penstock.connectors.mongodb import MongodbSource
from penstock.connectors.mongodb.auth import auth_options
from penstock.connectors.mongodb.config import MongodbAuth
from penstock.connectors.mysql import MysqlSource
from penstock.connectors.postgres import PostgresSource
from penstock.core.errors import Permanent, Transient
from penstock.core.known_secrets import conceal
from penstock.sdk.network.identity import IdentityAuth
from servers.drivers import POSTGRES, driver
from servers.ferretdb import FerretDb
from servers.mariadb import MariaDb
from servers.postgres import ROOT, Postgres

__all__ = ["entra", "metadata"]
AUTHS: dict[str, dict[str, str]] = {
    "aws": {"identity": "aws", "region": "eu-west-1"},
    "azure": {"identity": "azure"},
    "azure user": {"identity": "azure", "client_id": "client"},
    "app service": {"identity": "azure"},
    "google": {"identity": "google"},
    "workload": {"identity": "azure"},
}


@pytest.mark.parametrize("name", AUTHS)
def test_the_identity_logs_in(
    name: str, metadata: Metadata, postgres: Postgres, mariadb: MariaDb,
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    if name == "workload":
        metadata = request.getfixturevalue("entra")
    if name == "app service":
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{metadata.url}/app-service")
        monkeypatch.setenv("IDENTITY_HEADER", "h")
    user = f"made-up-{name.replace(' ', '-')}"
    auth = {"username": user, **AUTHS[name]}
    made = IdentityAuth.model_validate(auth)
    # The database knows the token, which a connection within the next minutes sends again.
    token = made.password_for("127.0.0.1", postgres.port)
    with postgres.client(user=ROOT) as client:
        client.execute(f'DROP ROLE IF EXISTS "{user}"')
        client.execute(f"CREATE ROLE \"{user}\" LOGIN PASSWORD '{token}'")
    query = {"query": "SELECT 1 AS id", "auth": auth, "url": postgres.login["url"]}
    source = PostgresSource.create(PostgresSource.config_type.model_validate(query))
    assert source.infer_schema().names == ["id"]
    source.close()
    token = made.password_for("127.0.0.1", mariadb.port)
    with mariadb.client() as client, client.cursor() as cursor:
        cursor.execute(f"CREATE OR REPLACE USER '{user}' IDENTIFIED BY '{token}'")
        cursor.execute(f"GRANT ALL ON *.* TO '{user}'")
    query["url"] = mariadb.login["url"]
    of_mysql = MysqlSource.create(MysqlSource.config_type.model_validate(query))
    assert of_mysql.infer_schema().names == ["id"]
    of_mysql.close()
    assert len(metadata.requests) == 2 and str(token) not in conceal(f"a message with {token}")
    if name == "azure user":
        assert str(token).endswith("-client")


def test_a_token_of_aws_is_signed(metadata: Metadata) -> None:
    """The signature is that of a request of the user to the database at its address."""
    auth = IdentityAuth.model_validate({"username": "the user", **AUTHS["aws"]})
    token = str(auth.password_for("db.example.com", 5432))
    place, _, query = token.partition("/?")
    *signed, signature = query.split("&")
    assert place == "db.example.com:5432"
    values = {name: value for name, (value,) in parse_qs(query).items()}
    assert values["Action"] == "connect" and values["DBUser"] == "the user"
    assert values["X-Amz-Security-Token"] == SESSION and values["X-Amz-Expires"] == "900"
    date = values["X-Amz-Date"]
    scope = f"{date[:8]}/eu-west-1/rds-db/aws4_request"
    assert values["X-Amz-Credential"] == f"{ACCESS_KEY}/{scope}"
    empty = hashlib.sha256(b"").hexdigest()
    request = "\n".join(["GET", "/", "&".join(sorted(signed)), f"host:{place}", "", "host", empty])
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, digest])
    key = f"AWS4{SECRET_KEY}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), "sha256").digest()
    assert signature == f"X-Amz-Signature={key.hex()}"


def test_a_token_is_replaced_before_it_expires(
    metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests do not use a proxy, which does not have the identity."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    metadata.seconds = 200
    auth = IdentityAuth.model_validate({"username": "u", "identity": "google"})
    assert auth.password_for("h", 1) != auth.password_for("h", 1)
    metadata.seconds = 900
    assert auth.password_for("h", 1) == auth.password_for("h", 1) == "made-up-token-3"
    assert auth.password_for("other", 1) == "made-up-token-4"


@pytest.mark.parametrize("name", ["azure", "google"])
def test_services_that_have_no_token(name: str, metadata: Metadata) -> None:
    auth = IdentityAuth.model_validate({"username": "u", "identity": name})
    for status, kind, code in (
        (403, Permanent, "authentication"), (503, Transient, "unreachable"),
        (429, Transient, "unreachable"),
    ):  # fmt: skip
        metadata.status = status
        with pytest.raises(kind, match=f"of this machine .{name}.: HTTP {status}") as caught:
            auth.password_for("h", 1)
        assert caught.value.code == code
    metadata.shutdown()
    metadata.server_close()
    with pytest.raises(Transient, match="could not obtain a token"):
        auth.password_for("h", 1)


def test_the_workload_identity_of_a_pod(entra: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token file is read for each exchange, and a client ID of the options has precedence."""
    auth = {"username": "u", "identity": "azure"}
    token = IdentityAuth.model_validate(auth).password_for("h", 1)
    assert token == "made-up-token-1-of-pod"
    assert ASSERTION not in conceal(f"a message with {ASSERTION}")
    other = IdentityAuth.model_validate({**auth, "client_id": "other"})
    assert other.password_for("h", 1) == "made-up-token-2-other"
    Path(os.environ["AZURE_FEDERATED_TOKEN_FILE"]).write_text("expired")
    with pytest.raises(Permanent, match=r"HTTP 400: .*made-up reason"):
        other.password_for("h", 2)
    entra.status = 503
    Path(os.environ["AZURE_FEDERATED_TOKEN_FILE"]).write_text(ASSERTION)
    with pytest.raises(Transient, match="HTTP 503"):
        other.password_for("h", 2)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("AZURE_CLIENT_ID", "", "no AZURE_CLIENT_ID"),
        ("AZURE_TENANT_ID", "", "no AZURE_TENANT_ID"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/missing/token", "cannot read AZURE_FEDERATED_TOKEN_FILE"),
        ("AZURE_AUTHORITY_HOST", "http://127.0.0.1", "expected https://HOST"),
    ],
)
def test_an_incomplete_workload_identity(
    name: str, value: str, message: str, entra: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The identity of the machine does not take the place of that of the pod."""
    monkeypatch.setenv(name, value)
    with pytest.raises(Permanent, match=message) as caught:
        IdentityAuth.model_validate({"username": "u", "identity": "azure"}).password_for("h", 1)
    assert caught.value.code == "authentication" and not entra.requests


def test_an_authority_with_another_certificate(
    entra: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(Transient, match="CERTIFICATE_VERIFY_FAILED"):
        IdentityAuth.model_validate({"username": "u", "identity": "azure"}).password_for("h", 1)
    assert not entra.requests


def mongodb_client(auth: dict[str, str], url: str) -> Any:
    options = {"url": url, "collection": "c", "auth": auth}
    return MongodbSource.create(MongodbSource.config_type.model_validate(options))


@pytest.mark.parametrize(
    ("auth", "mechanism"),
    [
        ({"identity": "aws"}, "MONGODB-AWS"),
        ({"identity": "azure", "audience": AZURE_RESOURCES[0]}, "MONGODB-OIDC"),
        ({"identity": "google", "audience": "made-up-audience"}, "MONGODB-OIDC"),
    ],
    ids=["aws", "azure", "google"],
)
def test_a_mechanism_that_the_server_does_not_support(
    auth: dict[str, str], mechanism: str, metadata: Metadata, ferretdb: FerretDb
) -> None:
    """The client has credentials before it requests the mechanism."""
    source = mongodb_client(auth, ferretdb.url)
    with pytest.raises(Permanent, match=f"Unsupported authentication .*{mechanism}") as caught:
        source.check()
    assert caught.value.code == "authentication"
    assert len(metadata.requests) == 1
    metadata.status = 403
    rejected = r"identity of this machine .*403|temporary MONGODB-AWS credentials"
    with pytest.raises(Permanent, match=rejected) as caught:
        mongodb_client(auth, ferretdb.url).check()
    assert caught.value.code == "authentication"


def test_tokens_for_mongodb(metadata: Metadata) -> None:
    """Tokens have the audience and the client ID of the options."""
    for auth, token in (
        ({"identity": "azure", "audience": AZURE_RESOURCES[0], "client_id": "c"}, "1-c"),
        ({"identity": "google", "audience": "a b"}, "2-a b"),
    ):
        found = auth_options(MongodbAuth.model_validate(auth))
        callback = found["authMechanismProperties"]["OIDC_CALLBACK"]
        context = OIDCCallbackContext(timeout_seconds=1, username="", version=1)
        assert callback.fetch(context).access_token == f"made-up-token-{token}"
    password = MongodbAuth.model_validate({"username": "u", "password": "p"})
    assert auth_options(password) == {"username": "u", "password": "p", "authSource": "admin"}


def test_the_identity_logs_in_by_jdbc(metadata: Metadata, postgres: Postgres) -> None:
    auth = {"username": "made-up-jdbc", "identity": "google"}
    options = {
        "url": f"jdbc:postgresql://127.0.0.1:{postgres.port}/made-up%20shop",
        "jars": [driver(POSTGRES)], "auth": auth, "query": "SELECT 1 AS id",
    }  # fmt: skip
    token = IdentityAuth.model_validate(auth).password_for("127.0.0.1", postgres.port)
    with postgres.client(user=ROOT) as client:
        client.execute('DROP ROLE IF EXISTS "made-up-jdbc"')
        client.execute(f"CREATE ROLE \"made-up-jdbc\" LOGIN PASSWORD '{token}'")
    source = JdbcSource.create(JdbcSource.config_type.model_validate(options))
    assert source.infer_schema().names == ["id"]
    source.close()


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("jdbc:postgresql://db.example/shop", "db.example:5432"),
        ("jdbc:mysql://db.example:3307", "db.example:3307"),
        ("jdbc:mariadb://db.example?useSsl=true", "db.example:3306"),
    ],
)
def test_tokens_of_aws_are_signed_for_the_host_of_jdbc(
    url: str, address: str, metadata: Metadata
) -> None:
    auth = {"username": "u", **AUTHS["aws"]}
    config = JdbcSource.config_type.model_validate({"url": url, "auth": auth, "table": "t"})
    assert config.driver_properties()["password"].startswith(f"{address}/?")


@pytest.mark.parametrize(
    "url", ["jdbc:oracle:thin:@//db:1521/s", "jdbc:postgresql://a,b/shop", "jdbc:postgresql:shop"]
)
def test_urls_of_jdbc_without_an_identity(url: str) -> None:
    auth = {"username": "u", "identity": "azure"}
    with pytest.raises(ValidationError, match=r"auth\.identity requires"):
        JdbcSource.config_type.model_validate({"url": url, "auth": auth, "table": "t"})


def test_aws_without_credentials_or_region(
    metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = IdentityAuth.model_validate({"username": "u", "identity": "aws"})
    with pytest.raises(Permanent, match="no region for a token of AWS"):
        auth.password_for("h", 1)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert "eu-west-1" in str(auth.password_for("h", 1))
    metadata.status = 500
    with pytest.raises(Transient, match="could not obtain a token"):
        auth.password_for("h", 2)
    monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(Permanent, match="Unable to locate credentials"):
        auth.password_for("h", 2)


@pytest.mark.parametrize(
    "auth",
    [
        {"username": "u"},
        {"identity": "aws"},
        {"username": "u", "password": "p", "identity": "aws"},
        {"username": "u", "password": "p", "region": "eu-west-1"},
        {"username": "u", "identity": "aws", "client_id": "c"},
        {"username": "u", "identity": "another"},
    ],
)
def test_incomplete_credentials(auth: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        IdentityAuth.model_validate(auth)
