"""Invalid options of the connectors for TCP, UDP and Modbus."""

from __future__ import annotations

from typing import Any

import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.modbus import ModbusSource
from penstock.connectors.tcp import TcpSink, TcpSource
from penstock.connectors.udp import UdpSource


@pytest.mark.parametrize("component", [TcpSource, TcpSink])
@pytest.mark.parametrize(
    "case",
    [
        ({}, "listen", "expected either listen or connect"),
        ({"listen": "a:1", "connect": "a:1"}, "connect", "expected either listen or connect"),
        ({"listen": "a:1", "tls": True}, "tls", "tls requires certificate and key with listen"),
        ({"listen": "a"}, "listen", "expected host:port"),
        (
            {"connect": "a:1", "framing": {"delimiter": ""}},
            "framing.delimiter",
            "expected at least one character",
        ),
        (
            {"connect": "a:1", "framing": {"digits": 0}},
            "framing.digits",
            "greater than or equal to 1",
        ),
    ],
)
def test_invalid_options_of_tcp(component: Any, case: Case) -> None:
    assert_option_error(component.config_type, {}, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"multicast_group": "10.0.0.1"}, "multicast_group", "expected a multicast address"),
        (
            {"listen": "[::]:1", "multicast_group": "239.255.7.7"},
            "multicast_group",
            "multicast_group requires an IPv4 address in listen",
        ),
        ({"interface": "eth0"}, "interface", "Expected 4 octets in 'eth0'"),
    ],
)
def test_invalid_options_of_udp(case: Case) -> None:
    assert_option_error(UdpSource.config_type, {"listen": "0.0.0.0:1"}, case)


def point(kind: str = "holding_registers", **options: Any) -> dict[str, Any]:
    return {"name": "p", "kind": kind, "address": 0, **options}


@pytest.mark.parametrize(
    "case",
    [
        ({"points": []}, "points", "List should have at least 1 item"),
        ({"tls": {"certificate": "c"}}, "tls", "expected both certificate and key"),
        ({"points": [point(), point()]}, "points", "two points have the same name"),
        ({"points": [point(quantity=126)]}, "points.0", "at most 125 registers per request"),
        (
            {"points": [point(data_type="int32", quantity=63)]},
            "points.0",
            "at most 125 registers per request, found 126",
        ),
        ({"points": [point("coils", quantity=2001)]}, "points.0", "at most 2000 bits per request"),
        ({"points": [point("coils", scale=2)]}, "points.0", "scale and offset are for numbers"),
        (
            {"points": [point(data_type="string", offset=2)]},
            "points.0",
            "scale and offset are for numbers",
        ),
    ],
)
def test_invalid_options_of_modbus(case: Case) -> None:
    options = {"connect": "a:502", "points": [point()]}
    assert_option_error(ModbusSource.config_type, options, case)
