"""Tables of the store. Times are ISO 8601 in UTC."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()
LAYOUT = 6
"""Version of the tables; `upgrade.py` has the steps between versions."""

STORE = Table("store", METADATA, Column("layout", Integer, nullable=False))

PIPELINES = Table(
    "pipelines",
    METADATA,
    Column("id", String, primary_key=True),
    Column("file", String, nullable=False, unique=True),
    Column("wish", String, nullable=False, default="stopped"),
    Column("wished_by", String),
    Column("wished_at", String),
    Column("fresh", Boolean, nullable=False, default=False),
    Column("version", Integer),
    Column("digest", String),
    Column("failure", JSON(none_as_null=True)),
    Column("failed_starts", Integer, nullable=False, default=0, server_default="0"),
    Column("wishes", Integer, nullable=False, default=0, server_default="0"),
    Column("stamp", String),
    Column("facts", JSON(none_as_null=True)),
)
"""`wish` is running, stopped or restarted. `wishes` is the number of wishes so far, and identifies
the last one. `fresh` resets the state at the next start. `version` is the applied one, and `digest`
the SHA-256 of its text. `failure` is the health after the server has given up. `failed_starts` are
those in a share, since a user has started the pipeline, a version was applied, or a run has written
a batch. `facts` are those of the file (see `workers.operations.describe`), of the time and size
`stamp`."""

VERSIONS = Table(
    "versions",
    METADATA,
    Column("pipeline", String, ForeignKey("pipelines.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("text", Text, nullable=False),
    Column("author", String, nullable=False),
    Column("note", String, nullable=False),
    Column("time", String, nullable=False),
)

STARTS = Table(
    "starts",
    METADATA,
    Column("run", String, primary_key=True),
    Column("pipeline", String, ForeignKey("pipelines.id", ondelete="CASCADE"), nullable=False),
    Column("version", Integer),
    Column("time", String, nullable=False),
    Column("author", String, nullable=False),
    Column("pid", Integer),
    Column("identity", String),
    Column("ended", Boolean, nullable=False, default=False),
    Column("host", String),
)
"""The starts of runs by the server. `identity` is that of the process (`core.process_identity`).
`ended` is whether the server has acted on the end of the run. `host` is the name of its machine, if
the store is not on it."""

USERS = Table(
    "users",
    METADATA,
    Column("name", String, primary_key=True),
    Column("password", String),
    Column("rights", JSON, nullable=False),
    Column("time", String, nullable=False),
)
"""`password` is an Argon2 hash; None for a user who cannot log in with one."""

TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", String, primary_key=True),
    Column("user", String, ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("hash", String, nullable=False, unique=True),
    Column("kind", String, nullable=False),
    Column("rights", JSON, nullable=False),
    Column("time", String, nullable=False),
    Column("expires", String),
    UniqueConstraint("user", "name"),
)
"""`kind` is token, session or code. `hash` is SHA-256 of the token, which is random."""

AUDIT = Table(
    "audit",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("time", String, nullable=False),
    Column("user", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("facts", JSON, nullable=False),
)
"""Append only: no function changes or removes a row."""

CONNECTIONS = Table(
    "connections",
    METADATA,
    Column("name", String, primary_key=True),
    Column("type", String, nullable=False),
    Column("options", JSON, nullable=False),
    Column("secrets", Text),
    Column("users", JSON(none_as_null=True)),
    Column("pipelines", JSON(none_as_null=True)),
    Column("right", String, nullable=False),
    Column("author", String, nullable=False),
    Column("time", String, nullable=False),
)
"""`options` are those without secrets; `secrets` is an encrypted JSON map of paths to values.
`users`, `pipelines` (IDs) and `right` permit the use; null permits all."""

FUNCTIONS = Table(
    "functions",
    METADATA,
    Column("name", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("text", Text, nullable=False),
    Column("signatures", JSON, nullable=False),
    Column("author", String, nullable=False),
    Column("note", String, nullable=False),
    Column("time", String, nullable=False),
)
"""Python files with functions for SQL, each text a version."""

REQUESTS = Table(
    "requests",
    METADATA,
    Column("user", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("digest", String, nullable=False),
    Column("status", Integer),
    Column("content", Text),
    Column("time", String, nullable=False),
)
"""Requests with the header Idempotency-Key, and their answers; no status while under way."""

SHARES = Table(
    "shares",
    METADATA,
    Column("id", String, primary_key=True),
    Column("hash", String, nullable=False, unique=True),
    Column("pipeline", String, ForeignKey("pipelines.id", ondelete="CASCADE"), nullable=False),
    Column("letter", String),
    Column("author", String, ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    Column("time", String, nullable=False),
    Column("expires", String, nullable=False),
)
"""Links for reading without a login, of a pipeline or of one of its dead letters."""

CHANNELS = Table(
    "channels",
    METADATA,
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("options", JSON, nullable=False),
    Column("secret", Text),
    Column("author", String, nullable=False),
    Column("time", String, nullable=False),
)
"""Recipients of alerts. `kind` is webhook or email; `secret` is encrypted."""

RULES = Table(
    "rules",
    METADATA,
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("pipelines", JSON(none_as_null=True)),
    Column("threshold", Float, nullable=False),
    Column("minutes", Float, nullable=False),
    Column("channels", JSON, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("silenced_until", String),
    Column("author", String, nullable=False),
    Column("time", String, nullable=False),
)

ALERTS = Table(
    "alerts",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("rule", String, nullable=False),
    Column("pipeline", String, nullable=False),
    Column("name", String, nullable=False),
    Column("message", Text, nullable=False),
    Column("opened", String, nullable=False),
    Column("resolved", String),
)
"""The history of alerts. `name` is that of the pipeline, which may be deleted later."""

MESSAGES = Table(
    "messages",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("alert", Integer, ForeignKey("alerts.number", ondelete="CASCADE"), nullable=False),
    Column("channel", String, nullable=False),
    Column("event", String, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("due", String),
    Column("sent", String),
    Column("error", Text),
)
"""Messages about alerts. `event` is opened or resolved. `due` is the time of the next attempt;
null after success and after the last attempt."""
