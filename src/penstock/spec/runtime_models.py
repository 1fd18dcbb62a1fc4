"""The model of the settings of the runtime."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, WithJsonSchema

from penstock.core.paths import UserPath, check_settings
from penstock.core.permission_errors import not_permitted
from penstock.core.python_permission import CODE, HINT, python_permitted, require_no_packages
from penstock.core.retry import Backoff
from penstock.core.secret import Secret
from penstock.core.units import ByteSize, Duration, PositiveDuration, byte_count
from penstock.spec.model_types import StrictModel

T = TypeVar("T")
STANDALONE = r"spark://[^/,\s]+:\d+(,[^/,\s]+:\d+)*"
"""The URL of the masters of a standalone cluster: Spark requires the ports."""
_MASTER = rf"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.+\]|{STANDALONE}|k8s://.+|yarn"


def _check_master(value: str) -> str:
    if value.startswith("sc://"):
        raise ValueError(
            "Spark Connect has no driver process for a run: expected the master of its cluster, "
            "spark://HOST:PORT, yarn or k8s://URL"
        )
    if not re.fullmatch(_MASTER, value):
        raise ValueError("expected local[N], spark://HOST:PORT, yarn or k8s://URL")
    return value


Master = Annotated[str, AfterValidator(_check_master)]
"""The URL of Spark's master."""

MIN_HEAP = 512 * 10**6


def _check_heap(value: str) -> str:
    if value == "auto":
        return value
    try:
        size = byte_count(value)
    except ValueError:
        raise ValueError("expected auto, or a size such as 2g or 1500 MB") from None
    if size < MIN_HEAP:
        raise ValueError("expected auto, or at least 512 MB, the minimum of Spark")
    return value


Heap = Annotated[
    str,
    AfterValidator(_check_heap),
    WithJsonSchema({"type": "string", "examples": ["auto", "2g", "1500 MB"]}),
]
"""The size of a heap, or `auto`."""


def _check_share(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", value):
        raise ValueError("expected a name of at most 64 letters, digits, hyphens and underscores")
    return value


ShareName = Annotated[str, AfterValidator(_check_share)]
"""The name of a share, which is part of the name of a directory."""


_SETTING_OF_CODE = re.compile(
    r"spark\.(?:jars|files|archives|plugins|submit\.|extraListeners|executorEnv|pyspark\."
    r"|sql\.(?:extensions|catalog|queryExecutionListeners|streaming\.streamingQueryListeners)"
    r"|.*(?:JavaOptions|ClassPath|LibraryPath)$)",
    re.IGNORECASE,
)
"""Names of settings that load code, or change the processes that run it."""


def _check_code(settings: dict[str, T]) -> dict[str, T]:
    """Returns Spark settings. Raises PydanticCustomError for code that is not permitted."""
    found = [name for name in settings if _SETTING_OF_CODE.match(name)]
    if found and not python_permitted():
        raise not_permitted(f"{found[0]} is not permitted on this server", CODE, HINT)
    return settings


class Restart(Backoff):
    """Restart of queries and receivers after a failure."""

    attempts: int | None = Field(default=None, ge=0)
    """The maximum number of restarts after transient failures within `window`.

    By default a run of unbounded sources has no maximum. A run that ends by itself has 8."""
    window: PositiveDuration = 3600.0
    """The time in which restarts are counted."""
    backoff: PositiveDuration = 1.0
    """The pause before the first restart. It doubles with each further failure.

    The first failure after a written batch starts again with this pause."""
    max_backoff: PositiveDuration = 60.0
    """The longest pause."""
    on_permanent: Literal["stop_pipeline", "stop_query"] = "stop_pipeline"
    """Whether a permanent failure of a query stops the pipeline or only the query."""


class DeadLetterLimits(StrictModel):
    """Limits of the dead letters in the state directory."""

    max_size: ByteSize = 2**30
    """The maximum size in total. The pipeline fails when it is exceeded."""
    retention: PositiveDuration = 30 * 86400.0
    """The age at which dead letters are removed."""


class Endpoints(StrictModel):
    """Endpoints of a run over HTTP: health, readiness, liveness and metrics."""

    listen: str | None = None
    """The address to listen on: `PORT`, which is reachable from this machine only, or `HOST:PORT`.
    By default, and without `penstock run --listen`, there are no endpoints."""
    health: str = Field(default="/health", pattern="^/")
    """The path of the health of the run."""
    ready: str = Field(default="/ready", pattern="^/")
    """The path that responds with 200 once all sources have subscribed, and with 503 before."""
    live: str = Field(default="/live", pattern="^/")
    """The path that responds with 200 as long as the process runs."""
    metrics: str = Field(default="/metrics", pattern="^/")
    """The path of metrics for Prometheus."""


def check_endpoint(url: str) -> str:
    """Returns the base URL of an endpoint of OTLP. Raises ValueError if it is none."""
    parts = urlsplit(url)
    try:
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("expected a URL without user and query, such as http://localhost:4318")
    return url


class Telemetry(StrictModel):
    """Export of metrics, traces and logs by OTLP over HTTP."""

    endpoint: Annotated[str, AfterValidator(check_endpoint)] | None = None
    """The base URL of the endpoint, such as `http://localhost:4318`.

    By default, and without `penstock run --otlp-endpoint`, nothing is exported."""
    headers: dict[str, Secret] = {}
    """Headers of requests, such as `Authorization`."""
    interval: PositiveDuration = 10.0
    """The time between two exports of metrics."""


class Runtime(StrictModel):
    """Settings of the runtime. No setting but `updating_ttl` changes the result of the pipeline."""

    master: Master = "local[*]"
    """Spark's master: local[N], spark://..., yarn, k8s://..."""
    trigger: Duration | Literal["asap"] = 0.02
    """The minimum time between the starts of two batches.

    Batches start at multiples of this time, and only if there are new rows. A longer time takes
    less CPU time: fewer and larger batches.
    """
    state: UserPath = ".penstock"
    """The state directory: a local directory, a path that all machines share, or the URL of an
    object store, such as `s3://bucket/prefix`, `gs://bucket/prefix`,
    `abfss://container@account.dfs.core.windows.net/prefix` or `az://container/prefix`."""
    storage: dict[str, Any] = {}
    """The connection to the object store of `state`, with the options of `storage` of the `files`
    connector: `endpoint_url`, `region`, `account`, `auth`, `anonymous` and `tls`."""
    state_store: Literal["auto", "memory", "rocksdb"] = "auto"
    """The state store of windows and joins: memory is faster, RocksDB is larger.

    `auto` is memory if the heap has at least 1 GiB, otherwise RocksDB. With `auto` and a local
    master, state in memory that exceeds 30 % of the heap moves to RocksDB between two batches: the
    query restarts, and no row is lost or repeated. `rocksdb` moves existing state at the start.
    State in RocksDB stays there.
    """
    partitions: int | None = Field(default=None, ge=1)
    """The number of partitions of the state of a query. Defaults to the number of cores.

    The first run pins the default. A new value repartitions existing state at the next start,
    exactly: no row is lost or repeated. State of windows and joins is in RocksDB afterwards.
    """
    updating_ttl: PositiveDuration | None = None
    """The time after which an updating query removes a key that receives no rows.

    The rows of the key are retracted from all results. A row that arrives again unchanged renews
    its key. The key is `primary_key` for changes, otherwise that of the first operator that keeps
    the rows. By default rows stay for ever. Rows are removed while other rows arrive, up to a
    twentieth of the time later.
    """
    packages: Annotated[list[str], AfterValidator(require_no_packages)] = []
    """Maven coordinates of jars for Spark."""
    java: Literal["bundled", "system"] = "bundled"
    """The Java runtime: the bundled one or that of the system."""
    memory: Heap = "auto"
    """The heap size of Spark's driver, which is all of Spark's memory in local mode.

    `auto` is a quarter of the memory of the machine or of its container, at most half of the
    available memory, and at most 1 GiB per core (3 GiB with less than three cores, 16 GiB in
    total). Heaps of other running pipelines count as not available. `penstock explain` shows the
    size.
    """
    share: ShareName | None = None
    """The name of a share. Under `penstock serve` the pipelines of a share run in one process with
    one JVM, which saves memory. Their settings `master`, `memory`, `java` and `packages` are equal,
    and so are settings of Spark that apply to the JVM. `penstock run` runs the pipeline alone."""
    spark: Annotated[
        dict[str, str | int | float | bool],
        AfterValidator(check_settings),
        AfterValidator(_check_code),
    ] = {}
    """Spark settings, passed to Spark unchanged."""
    restart: Restart = Restart()
    """Restart of failed queries."""
    dead_letters: DeadLetterLimits = DeadLetterLimits()
    """Limits of the dead letters in the state directory."""
    endpoints: Endpoints = Endpoints()
    """Endpoints of the run over HTTP."""
    telemetry: Telemetry = Telemetry()
    """Export of metrics, traces and logs by OTLP."""
