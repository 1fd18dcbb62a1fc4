from __future__ import annotations

from penstock.connectors.blackhole import BlackholeSink
from penstock.testing.contract import SinkContract


class TestBlackholeSink(SinkContract):
    component = BlackholeSink
