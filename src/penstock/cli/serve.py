"""`penstock serve`: the server of many pipelines."""

from __future__ import annotations

import os
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.core.errors import MissingExtra, UserError

if TYPE_CHECKING:
    from penstock.server.server import Server
    from penstock.server.settings import Settings

Directory = Annotated[Path, Parameter(name="DIR", help="The directory of the pipeline files.")]
Data = Annotated[
    Path | None,
    Parameter(metavar="DIR", help="The data of the server; by default DIR/.penstock/server."),
]
Host = Annotated[str, Parameter(metavar="NAME", help="The address to listen on.")]
Port = Annotated[int, Parameter(metavar="N", help="The port to listen on.")]
Store = Annotated[
    str | None,
    Parameter(
        metavar="URL",
        help="A PostgreSQL database of the store, by default PENSTOCK_STORE, or else SQLite.",
    ),
]
Environment = Annotated[
    tuple[str, ...],
    Parameter(name="--env", metavar="NAME", help="A variable for the runs; may be repeated."),
]
Hosts = Annotated[
    tuple[str, ...],
    Parameter(
        name="--allow-host", metavar="NAME",
        help="Another name by which clients call the server; may be repeated.",
    ),
]  # fmt: skip
Certificate = Annotated[
    Path | None, Parameter(name="--tls-cert", metavar="FILE", help="The certificate of TLS.")
]
Key = Annotated[Path | None, Parameter(name="--tls-key", metavar="FILE", help="The key of TLS.")]
OtlpEndpoint = Annotated[
    str | None,
    Parameter(
        metavar="URL",
        help="Export the telemetry of the server and of its runs by OTLP over HTTP, as to "
        "http://localhost:4318.",
    ),
]
InsecureHttp = Annotated[
    bool, Parameter(help="Permit an address beyond this machine without TLS, as behind a proxy.")
]
Python = Annotated[bool, Parameter(help="Permit Python code in pipelines.")]
Networks = Annotated[
    tuple[str, ...],
    Parameter(
        name="--allow-network", metavar="CIDR",
        help="A network that tests of connections may reach although it is special, such as "
        "127.0.0.0/8; may be repeated.",
    ),
]  # fmt: skip
Paths = Annotated[
    tuple[Path, ...],
    Parameter(
        name="--allow-path", metavar="DIR",
        help="A directory, beside that of the pipelines, whose files pipelines may name; may be "
        "repeated.",
    ),
]  # fmt: skip
KeyCommand = Annotated[
    str | None,
    Parameter(metavar="COMMAND", help="A command that prints the keys of secrets."),
]
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def serve(
    directory: Directory = Path(),
    /,
    *,
    data: Data = None,
    host: Host = "127.0.0.1",
    port: Port = 7077,
    store: Store = None,
    env: Environment = (),
    allow_host: Hosts = (),
    tls_cert: Certificate = None,
    tls_key: Key = None,
    insecure_http: InsecureHttp = False,
    otlp_endpoint: OtlpEndpoint = None,
    python: Python = True,
    allow_network: Networks = (),
    allow_path: Paths = (),
    key_command: KeyCommand = None,
) -> None:
    """Serve the pipelines of a directory: an API that starts, stops, changes and watches them.

    Each pipeline runs as a process of its own, which continues when the server ends, and which the
    server adopts when it starts again. The first start prints an address to log in with. A user
    who may edit pipelines may run code with the rights of the server.

      penstock serve pipelines
      penstock serve pipelines --env SHOP_PASSWORD --env KAFKA_BROKERS
      penstock serve pipelines --allow-path /data/orders
    """
    try:
        from penstock.server import server
    except ModuleNotFoundError as error:
        raise MissingExtra.of("server", error.name or "fastapi") from error
    from penstock.core import log
    from penstock.server.settings import Settings

    if (tls_cert is None) != (tls_key is None):
        raise UserError(
            "expected --tls-cert and --tls-key, found one of them", code="invalid-option",
            hint="Pass both options.",
        )  # fmt: skip
    if host not in LOOPBACK and tls_cert is None and not insecure_http:
        raise UserError(
            f"the server would listen on {host} without TLS", code="insecure-http",
            hint="Pass --tls-cert and --tls-key, or --insecure-http behind a proxy with TLS.",
        )  # fmt: skip
    root = directory.absolute()
    settings = Settings(
        root, (data or root / ".penstock" / "server").absolute(), host, port,
        store or os.environ.get("PENSTOCK_STORE") or None, tuple(env), python,
        frozenset(allow_host), tls_cert, tls_key, otlp_endpoint, key_command,
        _checked(allow_network), tuple(map(_directory, allow_path)),
    )  # fmt: skip
    server.serve(settings, log.make(), lambda started: _print_start(settings, started))


def _directory(path: Path) -> Path:
    """Returns an absolute path. Raises UserError for a path that is no directory."""
    if not path.is_dir():
        raise UserError(
            f"--allow-path: the directory {path} does not exist", code="missing-file",
            hint="Create the directory, or name another one.",
        )  # fmt: skip
    return path.absolute()


def _checked(networks: tuple[str, ...]) -> tuple[str, ...]:
    """Returns networks. Raises UserError for a text that is none."""
    for text in networks:
        try:
            ip_network(text, strict=False)
        except ValueError:
            raise UserError(
                f'expected a network, found "{text}"', code="invalid-option",
                hint="Write an address and a length, such as 10.1.0.0/16.",
            ) from None  # fmt: skip
    return networks


def _print_start(settings: Settings, server: Server) -> None:
    print(f"serving {settings.directory} at {settings.url}", flush=True)
    if server.login_code is not None:
        print(f"log in at {settings.url}/login#code={server.login_code}", flush=True)
