"""Modules of WebAssembly in wasmtime, in a sandbox process.

The module exports `memory` and two functions. `alloc(size: i32) -> i32` returns the address of free
bytes. `process(address: i32, size: i32) -> i64` receives rows as lines of JSON, and returns as many
lines: their address in the upper 32 bits, and their size in the lower ones.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import wasmtime

from penstock.transforms.sandbox.child import Batch, CodeError, Limits
from penstock.transforms.sandbox.collector import Collector

_TICKS = 4
"""The ticks of a time limit. A call ends within 1.25 times its limit."""
_MASK = 0xFFFFFFFF
_EXPORTS = {"alloc": (["i32"], ["i32"]), "process": (["i32", "i32"], ["i64"])}
_PLACE = re.compile(r"-->\s*[^\n]*?:(\d+):(\d+)")


class WasmEngine:
    """A module and its instance, without imports. A failure is followed by a new instance."""

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.epoch_interruption = True
        config.parallel_compilation = False
        self._engine = wasmtime.Engine(config)

    def load(self, code: bytes, options: dict[str, Any], limits: Limits) -> None:
        """Compiles the module. Raises CodeError."""
        self._limits, self._no_result = limits, options["no_result"]
        try:
            binary = code if code.startswith(b"\0asm") else wasmtime.wat2wasm(code.decode())
            self._module = wasmtime.Module(self._engine, bytes(binary))
        except (wasmtime.WasmtimeError, UnicodeDecodeError) as error:
            place = _PLACE.search(str(error))
            line, column = (int(place[1]), int(place[2])) if place else (0, 0)
            raise CodeError(str(error).splitlines()[0], line, column) from None
        self._check_exports()
        threading.Thread(target=self._tick, daemon=True).start()
        self._instance: _Instance | None = self._instantiate()

    def run(self, batch: Batch) -> bytes:
        """Returns the results of a batch. After a failure calls the module row by row."""
        results = Collector(batch.options["names"], batch.options["closed"])
        rows: list[str] = json.loads(batch.payload)
        lines: list[bytes] | None = None
        if not batch.stepwise and len(rows) > 1:
            try:
                lines = self._lines(rows)
            except CodeError:
                lines = None
        for index, row in enumerate(rows):
            try:
                if lines is None:
                    batch.clock.start(index)
                results.add(_values(lines[index] if lines is not None else self._lines([row])[0]))
            except CodeError as error:
                results.fail(index, error)
        return results.encode()

    def _lines(self, rows: list[str]) -> list[bytes]:
        """Returns a line for each row. Raises CodeError, and discards the instance then."""
        try:
            self._instance = self._instance or self._instantiate()
            output = self._instance.process("".join(f"{row}\n" for row in rows).encode())
            lines = output.splitlines()
            if len(lines) != len(rows):
                raise CodeError(f"expected {len(rows)} lines, found {len(lines)}")
        except CodeError:
            self._instance = None
            raise
        except (wasmtime.WasmtimeError, wasmtime.Trap, IndexError, ValueError) as error:
            self._instance = None
            raise CodeError(self._message(error)) from None
        return lines

    def _message(self, error: Exception) -> str:
        if isinstance(error, wasmtime.Trap) and error.trap_code == wasmtime.TrapCode.INTERRUPT:
            return str(self._no_result)
        causes = [line.strip() for line in str(error).splitlines() if line.strip()]
        return causes[-1].removeprefix("0: ") if causes else type(error).__name__

    def _instantiate(self) -> _Instance:
        store = wasmtime.Store(self._engine)
        store.set_limits(memory_size=self._limits.memory)
        store.set_epoch_deadline(_TICKS + 1)
        try:
            instance = wasmtime.Instance(store, self._module, [])
        except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
            raise CodeError(f"the module cannot be started: {self._message(error)}") from None
        return _Instance(store, instance.exports(store))

    def _check_exports(self) -> None:
        if self._module.imports:
            first = self._module.imports[0]
            raise CodeError(
                f"the module imports {first.module}.{first.name}, but a module has no imports"
            )
        exports = {export.name: export.type for export in self._module.exports}
        if not isinstance(exports.get("memory"), wasmtime.MemoryType):
            raise CodeError('the module has no memory with the name "memory"')
        for name, (parameters, results) in _EXPORTS.items():
            if _signature(exports.get(name)) != (parameters, results):
                expected = f"{name}({', '.join(parameters)}) -> {results[0]}"
                raise CodeError(f"the module does not export the function {expected}")

    def _tick(self) -> None:
        while True:
            time.sleep(self._limits.timeout / _TICKS)
            self._engine.increment_epoch()


def _signature(type_: Any) -> tuple[list[str], list[str]] | None:
    """Returns the types of the parameters and the results of a function, or None for others."""
    if not isinstance(type_, wasmtime.FuncType):
        return None
    return [*map(str, type_.params)], [*map(str, type_.results)]


class _Instance:
    """An instance of a module in a store."""

    def __init__(self, store: wasmtime.Store, exports: Any) -> None:
        self._store, self._memory = store, exports["memory"]
        self._alloc, self._process = exports["alloc"], exports["process"]

    def process(self, lines: bytes) -> bytes:
        """Returns the output of the module. Raises WasmtimeError, Trap or IndexError."""
        self._store.set_epoch_deadline(_TICKS + 1)
        address = self._alloc(self._store, len(lines)) & _MASK
        self._memory.write(self._store, lines, address)
        packed = self._process(self._store, address, len(lines))
        start, size = (packed >> 32) & _MASK, packed & _MASK
        if start + size > self._memory.data_len(self._store):
            raise CodeError("the results are outside of the memory")
        return bytes(self._memory.read(self._store, start, start + size))


def _values(line: bytes) -> Iterator[Any]:
    try:
        yield json.loads(line)
    except ValueError as error:
        raise CodeError(f"the result is not JSON: {error}") from None
