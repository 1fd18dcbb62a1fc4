"""Release of Java objects that Python no longer refers to, many in one message."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID, Py4JError
from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_names import java_names

RELEASED_TOGETHER = 200


def release_together(session: SparkSession) -> None:
    """Makes py4j release the Java objects of a session `RELEASED_TOGETHER` at a time.

    py4j sends a message for each object. The last objects are held until there are as many.
    """
    gateway: Any = session.sparkContext._gateway
    client: Any = gateway._gateway_client
    client.garbage_collect_object = _Releases(session, client, gateway).release


class _Releases:
    """Replacement of the method of py4j's client."""

    def __init__(self, session: SparkSession, client: Any, gateway: Any) -> None:
        java: Any = java_names(session)
        self._client = client
        self._known = gateway.java_gateway_server.getGateway().getBindings().keySet()
        self._commas = java.java.util.regex.Pattern.compile(",")
        self._ids: list[str] = []

    def release(self, id_: str, enqueue: bool = True) -> None:
        """Passes an object to py4j's thread for releases, which calls with `enqueue=False`.

        The gateway itself and its entry point remain.
        """
        if enqueue:
            self._client.finalizer_deque.appendleft((self._client, id_))
            return
        if id_ not in (ENTRY_POINT_OBJECT_ID, GATEWAY_SERVER_OBJECT_ID):
            self._ids.append(id_)
        if len(self._ids) < RELEASED_TOGETHER:
            return
        ids, self._ids = self._ids, []
        with suppress(Py4JError, OSError):
            self._known.removeAll(self._commas.splitAsStream(",".join(ids)).toList())
