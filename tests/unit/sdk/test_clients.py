"""The client pool: one client for each configuration of a process."""

from __future__ import annotations

import os

import pytest

from penstock.sdk import ClientPool, Config, Permanent, Secret
from penstock.sdk.clients import config_digest


class Login(Config):
    user: str
    password: Secret


class Client:
    def __init__(self, config: Login) -> None:
        self.config, self.closed = config, False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def pool() -> ClientPool[Login, Client]:
    return ClientPool(Client, Client.close)


def login(password: str = "one") -> Login:
    return Login(user="ann", password=Secret(password))


def test_equal_configurations_share_a_client(pool: ClientPool[Login, Client]) -> None:
    assert pool.get(login()) is pool.get(login())


def test_another_password_has_another_client(pool: ClientPool[Login, Client]) -> None:
    assert pool.get(login("one")) is not pool.get(login("two"))


def test_no_key_holds_a_secret() -> None:
    assert "one" not in config_digest(login())


def test_an_error_discards_the_client(pool: ClientPool[Login, Client]) -> None:
    with pytest.raises(Permanent), pool.using(login()) as failed:
        raise Permanent("cannot go on")
    assert failed.closed
    assert pool.get(login()) is not failed


def test_other_errors_keep_the_client(pool: ClientPool[Login, Client]) -> None:
    with pytest.raises(ZeroDivisionError), pool.using(login()) as client:
        1 / 0  # noqa: B018
    assert pool.get(login()) is client


def test_closing_the_pool_closes_its_clients(pool: ClientPool[Login, Client]) -> None:
    clients = [pool.get(login("one")), pool.get(login("two"))]
    pool.close()
    assert all(client.closed for client in clients)


def test_a_forked_process_starts_empty(pool: ClientPool[Login, Client]) -> None:
    parent = pool.get(login())
    child = os.fork()
    if child == 0:
        os._exit(0 if pool.get(login()) is not parent and not parent.closed else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
