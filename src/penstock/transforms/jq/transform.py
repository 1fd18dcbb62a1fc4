"""The transform `jq`: a filter of jq."""

from __future__ import annotations

from penstock.transforms.sandbox.transform import SandboxConfig, SandboxTransform


class JqConfig(SandboxConfig):
    code: str | None = None
    """The filter."""


class Jq(SandboxTransform[JqConfig]):
    """A filter of jq, which receives each row as an object.

    Each output of the filter is a row: an object, a list of objects, or null for no row. A filter
    without outputs drops the row. The columns of the output are those of `schema`, or otherwise
    those of the input.

    The filter has no environment, and no modules. A row on which it fails, exceeds `timeout` or
    needs more than `max_memory` becomes a dead letter.

    Numbers of jq are doubles: a BIGINT beyond 2^53 is text. DECIMAL, times, BINARY (base64), NaN
    and infinity are text, too. The sign of a zero is lost.

    Parallel by partition, without state.

    ```yaml
    type: jq
    from: orders
    schema: order_id BIGINT, sku STRING, price DOUBLE
    code: |
      .id as $id | .items[] | {order_id: $id, sku, price}
    ```
    """

    engine = "penstock.transforms.jq.engine:JqEngine"
    label = "the filter is not valid"
    extra = "jq"
    client_modules = ("jq",)
    exact_integers = False
