"""Options that connectors share: TLS, credentials, start positions, retry, key templates."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pydantic import TypeAdapter, ValidationError

from penstock.connectors.mysql import MysqlSource
from penstock.connectors.pulsar import PulsarSource
from penstock.sdk import Retry, StartAt
from penstock.sdk.columns.template import KeyTemplate
from penstock.sdk.network.auth import AwsAuth, PasswordAuth
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls
from penstock.sdk.network.unencrypted import is_local, unencrypted_credentials


@pytest.mark.parametrize(
    ("option", "scheme", "encrypted"),
    [
        (None, True, True),
        (None, False, False),
        (None, None, False),
        (True, True, True),
        (True, None, True),
        (False, False, False),
        (False, None, False),
        (Tls(verify=False), True, True),
    ],
)
def test_tls_follows_the_option_and_the_scheme(
    option: TlsOption, scheme: bool | None, encrypted: bool
) -> None:
    assert (resolve_tls(option, scheme) is not None) is encrypted


@pytest.mark.parametrize(("option", "scheme"), [(False, True), (True, False), (Tls(), False)])
def test_tls_that_contradicts_the_scheme_is_an_error(option: TlsOption, scheme: bool) -> None:
    with pytest.raises(ValueError, match="tls"):
        resolve_tls(option, scheme)


@pytest.mark.parametrize("given", [{}, {"username": "ann"}, {"password": "secret"}])
def test_half_a_login_is_an_error(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="expected username and password"):
        PasswordAuth.model_validate(given)


def test_a_session_token_requires_an_access_key() -> None:
    key = {"access_key": "a", "secret_key": "b"}
    assert AwsAuth.model_validate({**key, "session_token": "c"}).access_key == "a"
    with pytest.raises(ValidationError, match="access_key and secret_key"):
        AwsAuth.model_validate({"session_token": "c"})


def test_a_start_time_without_a_zone_is_utc() -> None:
    assert StartAt(timestamp=datetime(2024, 1, 1)).time == datetime(2024, 1, 1, tzinfo=UTC)
    with pytest.raises(ValidationError, match="expected timestamp"):
        StartAt()


def test_backoff_doubles_up_to_its_maximum() -> None:
    retry = Retry(backoff="1s", max_backoff="5s")  # type: ignore[arg-type]
    for failures, seconds in enumerate((1, 2, 4, 5, 5), 1):
        assert seconds * 0.8 <= retry.delay(failures) <= seconds * 1.2
    assert retry.delay(10_000) <= 6


def test_a_key_that_is_a_column_name_is_an_error() -> None:
    columns = pa.schema([("user", pa.string())])
    key = TypeAdapter(KeyTemplate)
    assert [*key.validate_python("{user}").check(columns, "key")] == []
    assert [*key.validate_python("all").check(columns, "key")] == []
    (error,) = key.validate_python("user").check(columns, "key")
    assert error.hint == 'Write "{user}" for the value of the column.'


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True), ("db.localhost", True), ("127.0.0.2", True), ("::1", True),
        ("%2Fvar%2Frun", True), ("/var/run", True), ("", True), ("10.0.0.1", False),
        ("localhost.example.com", False), ("0.0.0.0", False), ("{host}", False),
    ],
)  # fmt: skip
def test_hosts_of_this_machine(host: str, local: bool) -> None:
    assert is_local(host) is local


@pytest.mark.parametrize(
    ("scheme", "auth", "routes"),
    [("http", {"token": "x"}, [("admin", "url")]), ("http", None, []),
     ("https", {"token": "x"}, [])],
)  # fmt: skip
def test_credentials_for_a_second_address(
    scheme: str, auth: object, routes: list[tuple[str, ...]]
) -> None:
    """The token of Pulsar is sent to the admin API, too."""
    options = {"url": "pulsar+ssl://db.example.com", "topic": "t", "auth": auth}
    admin = {"url": f"{scheme}://db.example.com:8080"}
    config = PulsarSource.config_type.model_validate({**options, "admin": admin})
    found = [*unencrypted_credentials(config)]
    assert [each.option for each in found] == routes
    assert all(str(each.hint).startswith("Use https:// in url.") for each in found)


def test_the_token_of_an_identity_without_tls() -> None:
    options = {"url": "mysql://db.example.com/shop", "table": "t"}
    auth = {"username": "u", "identity": "azure"}
    config = MysqlSource.config_type.model_validate({**options, "auth": auth})
    assert [each.option for each in unencrypted_credentials(config)] == [("auth",)]
    config = MysqlSource.config_type.model_validate({**options, "auth": auth, "tls": True})
    assert not [*unencrypted_credentials(config)]
