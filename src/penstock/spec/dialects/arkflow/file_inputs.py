"""The inputs that are read once: files and databases."""

from __future__ import annotations

from penstock.spec.dialects.arkflow.components import ENVELOPE
from penstock.spec.dialects.arkflow.connections import database_tls, without_credentials
from penstock.spec.dialects.arkflow.plans import InputPlan
from penstock.spec.dialects.options.declarations import Option, options, unsupported
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree

FORMATS = ("json", "csv", "parquet", "avro", "arrow")
_REMOTE = "Ballista is another engine; DataFusion reads the rows in the run"
_FILE_TYPE = options(
    Option("type", required=True, choices=FORMATS), "path!", "store:map", "object_store:map"
)
_STORE = options(
    Option("type", required=True, choices=("s3", "gs", "az", "http", "hdfs")), "bucket_name",
    "access_key_id", "secret_access_key", "endpoint", "region", "allow_http:boolean", "url",
    "service_account_path", "account", "container_name", "access_key",
    unsupported("service_account_key", "the key is read from the file of service_account_path"),
    "ha_config:map",
)  # fmt: skip
_QUERY = options("query!", "table")
_FORMAT = options(Option("type", required=True, choices=FORMATS))
FILE = options(
    *ENVELOPE, "input_type:map", "path", "store:map", "object_store:map", "query:any",
    Option("format", "any"), unsupported("ballista", _REMOTE),
)  # fmt: skip
"""The options of the input `file`. Its flat form has the path and the format beside the type."""
_DATABASE = options(
    Option("type", required=True, choices=("mysql", "postgres", "sqlite", "duckdb", "json")),
    "uri", "path", "name", "ssl:map", "store:map", "object_store:map",
)  # fmt: skip
SQL = options(
    *ENVELOPE, "select_sql!", "input_type!:map", unsupported("ballista", _REMOTE),
    unsupported("poll_interval", "the query runs once"),
)  # fmt: skip
"""The options of the input `sql`."""

ONE_ROW: dict[str, Tree] = {"type": "memory", "rows": [{"run": 1}]}
"""A source with the row for which files or tables are read."""


def read_file(reading: Reading) -> InputPlan:
    inner = reading.map("input_type", _FILE_TYPE) or reading
    format_ = inner.map("format", _FORMAT) if inner.value("format") is not None and not (
        inner.text("format")
    ) else None  # fmt: skip
    type_ = inner.text("format") or (format_ or inner).text("type")
    path = inner.text("path")
    if type_ == "file":
        type_ = path.rpartition(".")[2].lower()
        type_ = {"jsonl": "json", "ndjson": "json"}.get(type_, type_)
    if type_ not in FORMATS:
        if reading.get("input_type") is not None and type_:
            return InputPlan(ONE_ROW, is_bounded=True)
        reading.findings.error(
            f"{reading.subject} requires the format of the file", reading.node.location,
            code="missing-option", hint="add input_type: {type: json, path: ...}",
        )  # fmt: skip
        return InputPlan(ONE_ROW, is_bounded=True)
    if not path:
        reading.findings.error(
            f'{reading.subject} requires "path"', reading.node.location, code="missing-option"
        )
    files: dict[str, Tree] = {
        "path": inner.get("path"), "format": type_, "storage": _store(inner)
    }  # fmt: skip
    query_node = reading.get("query")
    if query_node is not None and isinstance(query_node.data(), str):
        files["query"] = query_node
    else:
        query = reading.map("query", _QUERY)
        if query is not None:
            files |= {"query": query.get("query"), "table": query.get("table")}
    return InputPlan({**ONE_ROW}, {"files": files}, ("run",), is_bounded=True)


def _store(reading: Reading) -> Tree:
    store = reading.map("store", _STORE) or reading.map("object_store", _STORE)
    if store is None:
        return None
    type_ = store.text("type")
    if type_ == "hdfs":
        store.reject("type", "Penstock has no client of HDFS for files of ArkFlow")
        return None
    if type_ == "s3":
        return {
            "type": "s3", "bucket": store.get("bucket_name"), "region": store.get("region"),
            "auth": _auth(
                access_key=store.get("access_key_id"), secret_key=store.get("secret_access_key")
            ),
            "endpoint_url": store.get("endpoint"), "allow_http": store.get("allow_http"),
        }  # fmt: skip
    for name in ("url", "endpoint"):
        if type_ in {"gs", "az"} and store.get(name) is not None:
            store.reject(name, "Google Cloud Storage and Azure have their own addresses")
    if type_ == "gs":
        return {
            "type": "gs", "bucket": store.get("bucket_name"),
            "auth": _auth(service_account=store.get("service_account_path")),
        }  # fmt: skip
    if type_ == "az":
        return {
            "type": "az", "account": store.get("account"), "bucket": store.get("container_name"),
            "auth": _auth(account_key=store.get("access_key")),
        }  # fmt: skip
    return {"type": "http"}


def _auth(**credentials: Tree) -> Tree:
    """Returns `auth` of a store; None without credentials."""
    return credentials if any(value is not None for value in credentials.values()) else None


def read_sql(reading: Reading) -> InputPlan:
    database = reading.map("input_type", _DATABASE)
    if database is None:
        return InputPlan(ONE_ROW, is_bounded=True)
    type_ = database.text("type")
    if type_ == "json":
        files: dict[str, Tree] = {
            "path": database.text("path"), "format": "json", "storage": _store(database),
            "query": reading.get("select_sql"), "table": database.text("name") or "flow",
        }  # fmt: skip
        return InputPlan({**ONE_ROW}, {"files": files}, ("run",), is_bounded=True)
    required = "uri" if type_ in {"mysql", "postgres"} else "path"
    if database.get(required) is None and database.get("uri") is None:
        reading.findings.error(
            f'{database.subject} requires "{required}"', database.node.location,
            code="missing-option",
        )  # fmt: skip
    path = database.text("path") or database.text("uri").removeprefix("sqlite://")
    url, auth = without_credentials(to_url(database.text("uri")))
    tables: dict[str, Tree] = {
        "query": reading.get("select_sql"), "type": type_, "tls": database_tls(database),
        "catalog": database.text("name") or "flow",
        "url": url if required == "uri" else None, "auth": auth,
        "path": path if required == "path" else None,
    }  # fmt: skip
    return InputPlan({**ONE_ROW}, {"tables": tables}, ("run",), is_bounded=True)


def to_url(uri: str) -> str:
    """Returns the URL of a database in the form of Penstock."""
    return (
        f"postgresql://{uri.removeprefix('postgres://')}" if uri.startswith("postgres://") else uri
    )
