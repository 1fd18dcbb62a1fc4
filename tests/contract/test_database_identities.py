"""Databases to which the identity of the machine logs in, without Spark.

PostgreSQL and MariaDB have the tokens as passwords.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import parse_qs

import pytest
from pydantic import ValidationError

from cloud_metadata import ACCESS_KEY, SECRET_KEY, SESSION, Metadata, metadata
from penstock.connectors.mysql import MysqlSource
from penstock.connectors.postgres import PostgresSource
from penstock.core.errors import Permanent, Transient
from penstock.core.known_secrets import conceal
from penstock.sdk.network.identity import IdentityAuth
from servers.mariadb import MariaDb
from servers.postgres import ROOT, Postgres

__all__ = ["metadata"]
AUTHS: dict[str, dict[str, str]] = {
    "aws": {"identity": "aws", "region": "eu-west-1"},
    "azure": {"identity": "azure"},
    "azure user": {"identity": "azure", "client_id": "client"},
    "app service": {"identity": "azure"},
    "google": {"identity": "google"},
}


@pytest.mark.parametrize("name", AUTHS)
def test_the_identity_logs_in(
    name: str, metadata: Metadata, postgres: Postgres, mariadb: MariaDb,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
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
