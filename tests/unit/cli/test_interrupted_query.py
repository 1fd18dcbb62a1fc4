"""Ctrl-C during a query without tables ends the query and not the shell."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from penstock.cli.shell.constant import interruptible


def test_ctrl_c_is_not_an_error_of_java() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JError("the connection was closed")


def test_other_errors_of_java_remain() -> None:
    with pytest.raises(Py4JError), interruptible():
        raise Py4JError("out of memory")
