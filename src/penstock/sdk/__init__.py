"""The public API for plugin authors."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.core.errors import (
    DecodeError,
    EncodeError,
    MissingExtra,
    Permanent,
    PlanError,
    RecordError,
    Rejected,
    Transient,
)
from penstock.core.retry import Retry
from penstock.core.secret import Secret
from penstock.core.units import ByteSize, Duration, PositiveDuration
from penstock.journal import Journal, Message
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.capability import Capability
from penstock.sdk.clients import ClientPool
from penstock.sdk.component import SDK_VERSION, Component, Context
from penstock.sdk.config import Config, UserFile, UserPath
from penstock.sdk.format import FileFormat, FileWriter, Format
from penstock.sdk.lookup import LookupSource
from penstock.sdk.operations import Changes, Operation
from penstock.sdk.plugin_files import plugin
from penstock.sdk.receiving import ReceivingConfig, ReceivingSource
from penstock.sdk.record import PAYLOAD, Carried, Conjunct, Decoded, Encoded, Failure, Read, Records
from penstock.sdk.replayable_source import ReplayableSource
from penstock.sdk.retries import report_retry
from penstock.sdk.schema_changes import ColumnChange, SchemaChanges, compare_schemas
from penstock.sdk.side_output import ObservedRows, SideOutput
from penstock.sdk.sink import BatchId, Mode, Receipt, Sink, Writer
from penstock.sdk.source import Offset, Source
from penstock.sdk.start import StartAt
from penstock.sdk.transform import DataFrameTransform, PayloadTransform, Rejects, Transform

if TYPE_CHECKING:
    from penstock.sql.column_lineage import ColumnLineage
    from penstock.sql.relation import Relation, State

__all__ = [
    "PAYLOAD", "SDK_VERSION", "BatchId", "ByteSize", "Capability", "Carried", "Changes",
    "ClientPool", "ColumnChange", "ColumnLineage", "Component", "Config", "Conjunct", "Context",
    "DataFrameTransform", "DecodeError", "Decoded", "Duration", "EncodeError", "Encoded", "Failure",
    "FileFormat", "FileWriter", "Format", "Journal", "LookupSource", "Message", "MissingExtra",
    "Mode", "ObservedRows", "Offset", "Operation", "PayloadTransform", "Permanent", "PlanError",
    "PositiveDuration", "Read", "Receipt", "ReceivingConfig", "ReceivingSource", "RecordError",
    "Records", "Rejected", "Rejects", "Relation", "ReplayableSource", "Retry", "SchemaChanges",
    "Secret", "SideOutput", "Sink", "Source", "StartAt", "State", "Transform", "Transient",
    "UserFile", "UserPath", "Writer", "bisect_failures", "compare_schemas", "plugin",
    "report_retry",
]  # fmt: skip


_FACTS_OF_SQL = {
    "ColumnLineage": "penstock.sql.column_lineage",
    "Relation": "penstock.sql.relation",
    "State": "penstock.sql.relation",
}


def __getattr__(name: str) -> Any:
    """Imports the facts of SQL at their first use: workers and receivers analyze no SQL."""
    if name not in _FACTS_OF_SQL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_FACTS_OF_SQL[name]), name)
