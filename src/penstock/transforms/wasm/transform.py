"""The transform `wasm`: a module of WebAssembly."""

from __future__ import annotations

from penstock.sdk import UserFile
from penstock.transforms.sandbox.transform import SandboxConfig, SandboxTransform


class WasmConfig(SandboxConfig):
    code: str | None = None
    """The module in its text form (WAT)."""
    file: UserFile | None = None
    """A file with the module, in its text or binary form. It is read at the start of a run."""


class Wasm(SandboxTransform[WasmConfig]):
    """A module of WebAssembly, in its text or binary form, which is called for each batch.

    The module has no imports, and exports

    * `memory`,
    * `alloc(size: i32) -> i32`, which returns the address of free bytes: they are in use until the
      next call of `alloc`, as the results are,
    * `process(address: i32, size: i32) -> i64`, which receives rows as lines of JSON, and returns
      as many lines. The upper 32 bits are the address of the first line, the lower ones the size.

    A line of the results is an object, a list of objects, or null to drop the row. The columns of
    the output are those of `schema`, or otherwise those of the input.

    If a call ends with a trap or exceeds `timeout`, the module is called for each row by itself. A
    row that fails becomes a dead letter. The next row has a new instance of the module.

    DECIMAL, times, BINARY (base64), NaN and infinity are text.

    Parallel by partition. Each worker process has its own instance, whose memory is not durable.

    ```yaml
    type: wasm
    from: orders
    file: score.wasm
    schema: id BIGINT, score DOUBLE
    ```
    """

    engine = "penstock.transforms.wasm.engine:WasmEngine"
    label = "the module is not valid"
    extra = "wasm"
    client_modules = ("wasmtime",)
