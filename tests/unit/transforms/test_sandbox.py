"""Sandboxed code that leaves its limits: its row is a dead letter, and the others are processed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from penstock.core.errors import MissingExtra, OptionError
from penstock.sdk import Transform
from unit.transforms.sandboxed import THREE, make, run

FAST = {"timeout": "300ms", "max_memory": "64 MB"}
MODULE = """
  (module
    (memory (export "memory") 2 2)
    (func (export "alloc") (param i32) (result i32) (i32.const 64))
    (func (export "process") (param $p i32) (param $n i32) (result i64)
      (local $i i32)
      (loop $next
        (if (i32.lt_u (local.get $i) (local.get $n)) (then
          (if (i32.eq (i32.load8_u (i32.add (local.get $p) (local.get $i))) (i32.const 98)) (then
            BODY))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br $next))))
      (i64.or
        (i64.shl (i64.extend_i32_u (local.get $p)) (i64.const 32))
        (i64.extend_i32_u (local.get $n)))))
"""
"""A module that returns its rows, and executes BODY at a letter b."""

JAVASCRIPT = "function process(row) { if (row.s === 'b') { BODY } return row; }"
HOSTILE = [
    ("script", "while (true);", "no result within 300ms"),
    ("script", "Promise.resolve().then(() => { while (true); });", "no result within 300ms"),
    ("script", "const a = []; while (true) a.push({});", "more memory than max_memory (64.0 MB)"),
    ("script", "const a = []; while (true) a.push(new Uint8Array(1e7).fill(1));", "RangeError"),
    ("script", "let t = 'x'; while (true) t += t;", "RangeError: Invalid string length"),
    ("script", "(function f() { return f() + 1; })();", "Maximum call stack size exceeded"),
    ("script", "throw null;", "thrown: null"),
    ("script", "throw {toString() { throw 1; }};", "an error without text"),
    ("script", "return {get s() { throw new Error('x'); }};", "Error: x"),
    ("script", "row.constructor.constructor('return require')();", "require is not defined"),
    ("script", "return import('fs');", "found a Promise"),
    ("script", "eval('Deno.readTextFileSync(\"/etc/passwd\")');", "Deno is not defined"),
    ("script", "new WebAssembly.Memory({initial: 1});", "WebAssembly"),
    ("script", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);", "is not defined"),
    ("jq", 'if .s == "b" then [limit(infinite; repeat(1))] | length else . end', "no result"),
    ("jq", 'if .s == "b" then [range(1e9)] else . end', ""),
    ("jq", 'if .s == "b" then env.HOME, $ENV.PATH else . end | . // error("none")', "none"),
    ("vrl", 'if .s == "b" { .s = get_env_var!("PATH") }', "environment variable not found"),
    ("vrl", 'if .s == "b" { abort "it is bad" }', "it is bad"),
    ("wasm", "(loop $ever (br $ever))", "no result within 300ms"),
    ("wasm", "unreachable", "unreachable"),
    ("wasm", "(drop (i32.load (i32.const 0x7fffffff)))", "out of bounds"),
    ("wasm", "(return (i64.const -1))", "outside of the memory"),
    ("wasm", "(return (i64.const 0))", "expected 1 lines, found 0"),
]


@pytest.mark.slow
@pytest.mark.quick(4)
@pytest.mark.parametrize(("type_", "code", "message"), HOSTILE)
def test_a_hostile_row_costs_no_other_row(
    tmp_path: Path, type_: str, code: str, message: str
) -> None:
    template = {"script": JAVASCRIPT, "wasm": MODULE}.get(type_, "BODY")
    limits = FAST if "no result" in message else {"max_memory": "64 MB"}
    rows, dead_letters = run(tmp_path, type_, code=template.replace("BODY", code), **limits)
    assert [row["id"] for row in rows] == [1, 3]
    assert list(dead_letters) == [2] and message in dead_letters[2]


def test_vrl_drops_rows_and_returns_several(tmp_path: Path) -> None:
    code = 'if .s == "b" { abort }\nif .s == "c" { . = [., {"id": 4}] }'
    rows, dead_letters = run(tmp_path, "vrl", code=code)
    assert [row["id"] for row in rows] == [1, 3, 4] and dead_letters == {}


def test_jq_drops_rows_and_returns_several(tmp_path: Path) -> None:
    code = 'select(.s != "b") | ., {id: (.id + 10), s: "x"}'
    rows, dead_letters = run(tmp_path, "jq", code=code)
    assert [row["id"] for row in rows] == [1, 11, 3, 13] and dead_letters == {}


@pytest.mark.slow
def test_many_failures_of_a_batch_need_one_call(tmp_path: Path) -> None:
    batch = pa.record_batch({"id": list(range(2000)), "s": ["a"] * 2000})
    code = """
      let calls = 0;
      function process(row) {
        calls++;
        if (row.id % 2) throw new Error("odd");
        return {id: calls};
      }
    """
    rows, dead_letters = run(tmp_path, "script", batch, code=code)
    assert [row["id"] for row in rows] == list(range(1, 2000, 2))
    assert list(dead_letters) == list(range(1, 2000, 2))


@pytest.mark.slow
def test_a_script_cannot_change_results_of_others(tmp_path: Path) -> None:
    code = """
      JSON.stringify = JSON.parse = Object.keys = Array.isArray = () => { throw 1; };
      Date.now = () => 0; String = Number = BigInt = Date = undefined;
      Object.prototype.toJSON = () => 'polluted';
      Map.prototype.get = RegExp.prototype.exec = () => null;
      function process(row) { return row; }
    """
    rows, dead_letters = run(tmp_path, "script", code=code)
    assert rows == THREE.to_pylist() and dead_letters == {}


@pytest.mark.slow
def test_variables_stay_between_batches_of_a_process() -> None:
    code = "let n = 0; function process(row) { n++; return {id: n}; }"
    with closing(make("script", code=code, schema="id INT")) as transform:
        ids = [row["id"] for _ in range(2) for part in transform.apply(THREE)
               for row in _rows(part)]  # fmt: skip
    assert ids == [1, 2, 3, 4, 5, 6]


def _rows(part: Any) -> list[dict[str, Any]]:
    assert isinstance(part, pa.RecordBatch)
    return part.to_pylist()


@pytest.mark.slow
def test_a_sandbox_has_no_environment_and_no_files() -> None:
    transform = make("script", code="function process(row) { return row; }")
    with closing(transform):
        pid = _pid(transform)
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        assert "Max open files            0 " in Path(f"/proc/{pid}/limits").read_text()
        files = {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
    opened = {file for file in files if file.startswith("/") and not file.endswith("(deleted)")}
    assert opened == {"/dev/null"}
    assert not Path(f"/proc/{pid}").exists()


def _pid(transform: Transform[Any]) -> int:
    list(transform.apply(THREE))
    return int(transform._process._process.pid)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_process_that_is_killed_from_outside_is_replaced() -> None:
    code = "function process(row) { return row; }"
    with closing(make("script", code=code)) as transform:
        os.kill(_pid(transform), signal.SIGKILL)
        rows = [row for part in transform.apply(THREE) for row in _rows(part)]
    assert len(rows) == 3


@pytest.mark.slow
def test_a_killed_owner_leaves_no_process() -> None:
    program = (
        "from unit.transforms.sandboxed import THREE, make\n"
        "t = make('script', code='function process() { while (true); }', timeout='1h')\n"
        "t.open()\n"
        "print(t._process._process.pid, flush=True)\n"
        "list(t.apply(THREE))\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    with owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        began = psutil.Process(pid).cpu_times().user
        while psutil.Process(pid).cpu_times().user < began + 0.3:  # until the code runs
            time.sleep(0.02)
        owner.kill()
    for _ in range(600):
        if not _is_running(pid):
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the sandbox process is still running")


def _is_running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.quick(4)
@pytest.mark.parametrize(
    ("type_", "code", "place", "message"),
    [
        ("script", "function process(row) {\n  return row +;\n}", (2, 15), "Unexpected token"),
        ("script", "const a = 1;\nnull.x;", (2, 6), "Cannot read properties of null"),
        ("script", "function proces() {}", (1, 1), 'does not define a function "process"'),
        ("script", "while (true);", None, "no result within 300ms"),
        ("jq", "{a:\n .b", (2, 2), "syntax error"),
        ("jq", 'import "etc" as e; .', None, "module not found"),
        ("vrl", ".a = 1\n.b = 2 +", (2, 9), "syntax error"),
        ("vrl", ".b = nothing(.a)", (1, 6), "call to undefined function"),
        ("wasm", "(module\n (func (bad)))", (2, 9), "unknown operator"),
        ("wasm", "(module)", None, 'no memory with the name "memory"'),
        ("wasm", '(module (import "env" "f" (func)))', None, "imports env.f"),
        ("wasm", MODULE.replace("BODY", "").replace('"alloc"', '"a"'), None, "alloc(i32) -> i32"),
        ("wasm", MODULE.replace("BODY", "").replace("2 2", "2000"), None, "cannot be started"),
    ],
)
def test_invalid_code_is_an_error_at_its_place(
    type_: str, code: str, place: tuple[int, int] | None, message: str
) -> None:
    with pytest.raises(OptionError, match="is not valid") as caught:
        make(type_, code=code, **FAST).validate()
    assert message in caught.value.message
    assert caught.value.line_and_column == place


@pytest.mark.slow
def test_errors_of_a_file_are_at_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "total.js"
    file.write_text("function process(row) {\n  return {id: row.s.missing.x};\n}\n")
    rows, dead_letters = run(tmp_path, "script", file=str(file))
    assert rows == []
    assert dead_letters[1].endswith("(reading 'x') at total.js:2:29")
    file.write_text("\n\nfunction process(")
    with pytest.raises(Exception, match="Unexpected end of input") as caught:
        make("script", file=str(file)).validate()
    assert (caught.value.where.file, caught.value.where.line) == (str(file), 3)  # type: ignore
    with pytest.raises(OptionError, match="No such file"):
        make("script", file=str(tmp_path / "other.js")).validate()


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.sdk.component.find_spec", lambda _: None)
    for type_, module in [("script", "py_mini_racer"), ("jq", "jq"), ("vrl", "pyvrl")]:
        with pytest.raises(MissingExtra, match=module) as caught:
            make(type_, code=".").validate()
        assert caught.value.hint == f"Run pip install 'penstock[{type_}]'."
