"""Functions of WebAssembly modules over the rows of a batch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import MissingExtra, OptionError, Rejected
from penstock.transforms.steps.config import Step
from penstock.transforms.steps.json_rows import decode_json, encode_json
from penstock.transforms.steps.paths import locate

_MEMORY = 256 << 20
"""The maximum bytes of the memory of a module."""
_MASK = 0xFFFFFFFF


class WasmFunction:
    """A function of a module from a row to a row, both as JSON.

    The module has no imports, and exports `memory`, `alloc(size: i32) -> i32`,
    `dealloc(address: i32, size: i32)` and the function `(address: i32, size: i32) -> i64`, which
    returns the address of its result in the upper 32 bits and the size in the lower ones.
    """

    def __init__(self, config: Step, base: Path) -> None:
        self.config, self._base = config, base
        self._instance: Any = None

    def check(self) -> None:
        """Compiles the module. Raises OptionError, or MissingExtra."""
        if find_spec("wasmtime") is None:
            raise MissingExtra.of("wasm", "wasmtime")
        import wasmtime

        try:
            exports = self._start()[1]
        except (OSError, wasmtime.WasmtimeError, UnicodeDecodeError) as error:
            raise OptionError.of(
                "module", code="invalid-value",
                message=f"cannot load the module {self.config.module}: {_text(error)}",
            ) from error  # fmt: skip
        for name in ("memory", "alloc", "dealloc", self.config.function):
            if name not in exports:
                raise OptionError.of(
                    "module", message=f'the module exports no "{name}"', code="invalid-value"
                )

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows of the function. Raises Rejected, or DecodeError."""
        import wasmtime

        try:
            if self._instance is None:
                self._instance = self._start()
            return decode_json([self._call(row) for row in encode_json(batch)])
        except (wasmtime.WasmtimeError, wasmtime.Trap, IndexError, ValueError) as error:
            self._instance = None
            raise Rejected(f"the module failed: {_text(error)}", code="function-failed") from error

    def _call(self, row: bytes) -> bytes:
        """Returns the result for a row."""
        store, exports = self._instance
        memory = exports["memory"]
        store.set_fuel(self.config.fuel)
        address = exports["alloc"](store, len(row)) & _MASK
        memory.write(store, row, address)
        packed = exports[str(self.config.function)](store, address, len(row))
        start, size = (packed >> 32) & _MASK, packed & _MASK
        if start + size > memory.data_len(store):
            raise IndexError("the result is outside of the memory")
        result = bytes(memory.read(store, start, start + size))
        exports["dealloc"](store, address, len(row))
        exports["dealloc"](store, start, size)
        return result

    def _start(self) -> tuple[Any, Any]:
        """Returns the store and the exports of a new instance."""
        import wasmtime

        code = locate(str(self.config.module), self._base).read_bytes()
        config = wasmtime.Config()
        config.consume_fuel = True
        engine = wasmtime.Engine(config)
        binary = code if code.startswith(b"\0asm") else wasmtime.wat2wasm(code.decode())
        module = wasmtime.Module(engine, bytes(binary))
        store = wasmtime.Store(engine)
        store.set_limits(memory_size=_MEMORY)
        store.set_fuel(self.config.fuel)
        return store, wasmtime.Instance(store, module, []).exports(store)


def _text(error: Exception) -> str:
    """Returns the cause of an error, without the trace of the module."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].removeprefix("0: ") if lines else type(error).__name__
