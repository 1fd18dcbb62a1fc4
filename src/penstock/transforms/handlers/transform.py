"""The transform `handlers`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.handlers.dispatch import ByGroup
from penstock.handlers.errors import HandlerError
from penstock.handlers.expiry import ExpiringGroups
from penstock.handlers.handler import Chain as HandlerChain
from penstock.handlers.handler import Handler
from penstock.handlers.merge import Merge
from penstock.handlers.metadata import (
    COLUMN_TYPE,
    TIME_UNIT,
    Role,
    TimeUnit,
    field_value,
    with_group,
)
from penstock.handlers.roles import Roles
from penstock.sdk import DataFrameTransform, Relation, State
from penstock.sql.column_lineage import ComputedColumns
from penstock.sql.dialect.relation import Output
from penstock.transforms.columns import check_groups, require, require_column
from penstock.transforms.group_state import BucketTask, apply_by_bucket
from penstock.transforms.handlers.chain import Chain
from penstock.transforms.handlers.config import HandlersConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

_INPUT = "_penstock_input"
"""The column with the number of the input of a row, in front of the handlers."""


class Handlers(DataFrameTransform[HandlersConfig]):
    """Applies handlers of stream-data-processor in order, with state for each group.

    The handlers are `default`, `filter`, `map`, `group`, `sort`, `aggregate`, `join`, `window`,
    `dynamic_window`, `derivative`, `threshold` and `dispatch`. They have the meaning of
    stream-data-processor, which differs from that of other transforms and of SQL: windows begin
    with the first row of their group, and close when a row after their end arrives.

    Rows are processed in the order of their source, and the result is the same for every division
    into batches and partitions, and after restarts. Rows of several inputs are in the order of
    their times: a row waits until each input has a row at or after its time. Partitions of a topic
    have no order between them: write the rows of a group to one partition.

    Late rows, rows without a time, and rows on which a handler fails become dead letters. Rows of
    the last window or batch are in the state until a later row arrives. The state grows with the
    number of groups; `ttl` removes groups without rows. The output has no event time. Parallel by
    group, with one input.

    ```yaml
    type: handlers
    from: metrics
    by: [host]
    time: time
    handlers:
      - {type: window, period: 7 minutes, every: 2 minutes}
      - type: aggregate
        columns:
          - {function: mean, column: idle, as: idle_mean}
      - {type: map, set: {is_busy: idle_mean < 20}}
    ```
    """

    rejects_rows = True

    @property
    def _chain(self) -> Chain:
        return Chain(self.config.handlers, tuple(self.config.batch))

    @property
    def _is_merged(self) -> bool:
        return len(self.context.inputs) > 1

    def validate(self) -> None:
        super().validate()
        if self._is_merged and self.config.time is None:
            raise OptionError.of(
                "time", message="several inputs require a time", code="missing-option",
                hint="Set time to the column of the time.",
            )  # fmt: skip

    def relation(self) -> Relation:
        kinds = dict.fromkeys(each.type for each in self.config.handlers)
        contents = f"the rows and the values of {', '.join(kinds)}"
        has_state = self._chain.has_state or self._is_merged
        state = State((contents,), emits_final_rows=True) if has_state else None
        return Relation(state=state, lineage=ComputedColumns(), output=Output())

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import lit
        from pyspark.sql.pandas.types import to_arrow_schema

        frame = self._united(inputs)
        by = self._columns(frame, "by")
        check_groups(frame, [frame.columns.index(name) for name in by])
        roles = self._roles(frame)
        chain = Chain(self.config.handlers, tuple(self._columns(frame, "batch")))
        schema = to_arrow_schema(frame.schema, timezone="UTC")
        output = self._output(schema, roles, chain, by)
        ttl = None if self.config.ttl is None else int(self.config.ttl)
        if ttl is not None and roles.time is None:
            raise OptionError.of(
                "ttl", message="ttl requires a time", code="missing-option",
                hint="Set time to the column of the time.",
            )  # fmt: skip
        create = partial(bucket_handler, chain, tuple(by), len(inputs), ttl)
        task = BucketTask(create, roles, self.rejects)
        if self._is_merged:
            numbered = [
                each.withColumn(_INPUT, lit(number).cast("bigint"))
                for number, each in enumerate(inputs.values())
            ]
            frame = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), numbered)
            return apply_by_bucket(frame, task, (), output)
        if not chain.has_state:
            return frame.mapInArrow(task.apply, output)
        return apply_by_bucket(frame, task, by, output)

    def _columns(self, frame: DataFrame, option: str) -> list[str]:
        """Returns the columns of an option as the input has them. Raises OptionError."""
        names: list[str] = getattr(self.config, option)
        require(self, frame, option, names)
        known = {column.lower(): column for column in frame.columns}
        return [known[name.lower()] for name in names]

    def _united(self, inputs: Mapping[str, DataFrame]) -> DataFrame:
        """Returns the rows of all inputs. Raises OptionError for a column with several types."""
        if len({frame.isStreaming for frame in inputs.values()}) > 1:
            raise OptionError.of(
                "from", message="the inputs are streams and static tables",
                code="unsupported-option", hint="Join a table with a transform sql.",
            )  # fmt: skip
        types: dict[str, tuple[str, str]] = {}
        for index, (name, frame) in enumerate(inputs.items()):
            for field in frame.schema:
                kind = field.dataType.simpleString().upper()
                first, known = types.setdefault(field.name.lower(), (name, kind))
                if kind != known:
                    raise OptionError.of(
                        "from", index, code="unsupported-type",
                        message=f'column "{field.name}" of "{name}" is {kind}, and {known} in '
                        f'"{first}"',
                        hint="Add a transform cast.",
                    )  # fmt: skip
        return reduce(
            lambda a, b: a.unionByName(b, allowMissingColumns=True), list(inputs.values())
        )

    def _roles(self, frame: DataFrame) -> Roles:
        """Returns the roles of columns: those of the options, then those of the transform upstream.

        Raises OptionError.
        """
        columns = {field.name: _role(field) for field in frame.schema}
        units = {field.name: unit for field in frame.schema if (unit := _unit(field)) is not None}
        named = {role: name for name, role in columns.items()}
        columns = {n: r if r is Role.TAG else Role.FIELD for n, r in columns.items()}
        columns |= dict.fromkeys(self._columns(frame, "tags"), Role.TAG)
        found: dict[str, str | None] = {}
        for option, role in (("time", Role.TIME), ("measurement", Role.MEASUREMENT)):
            name = getattr(self.config, option)
            known = named.get(role) if name is None else name
            found[option] = (
                None if known is None else require_column(self, frame, option, known).name
            )
        return Roles(found["time"], found["measurement"], columns, {**units, **self._chain.units})

    def _output(self, schema: pa.Schema, roles: Roles, chain: Chain, by: list[str]) -> StructType:
        """Returns the columns of the output, whose metadata have the roles. Raises OptionError."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        for option in ("time", "measurement"):
            try:
                Roles(**{option: getattr(roles, option)}).schema(schema)
            except HandlerError:
                expected = "a TIMESTAMP" if option == "time" else "a STRING"
                name = getattr(roles, option)
                raise OptionError.of(
                    option,
                    message=f'expected {expected}, and column "{name}" has another type',
                    code="unsupported-type",
                ) from None
        grouped = with_group(roles.schema(schema), dict.fromkeys(by))
        return StructType([
            StructField(field.name, from_arrow_type(field.type, True), True, _metadata(field))
            for field in chain.output(grouped)
        ])  # fmt: skip


def bucket_handler(
    chain: Chain, by: tuple[str, ...], inputs: int = 1, ttl: int | None = None
) -> Handler:
    """Returns the handler of a bucket, or without state of a partition."""
    if not chain.has_state:
        handlers: list[Handler] = [chain()]
    else:
        create = chain.with_state()
        groups = ByGroup(by, create) if ttl is None else ExpiringGroups(by, create, ttl)
        handlers = [groups, chain.after_state()]
    merge = [Merge(inputs, _INPUT)] if inputs > 1 else []
    return HandlerChain([*merge, *handlers])


def _role(field: StructField) -> Role:
    role = str(field.metadata.get(COLUMN_TYPE))
    return Role(role) if role in [*Role] else Role.FIELD


def _unit(field: StructField) -> TimeUnit | None:
    unit = str(field.metadata.get(TIME_UNIT))
    return TimeUnit(unit) if unit in [*TimeUnit] else None


def _metadata(field: pa.Field) -> dict[str, str]:
    found = {key: field_value(field, key) for key in (COLUMN_TYPE, TIME_UNIT)}
    return {key: value for key, value in found.items() if value is not None}
