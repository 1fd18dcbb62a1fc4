"""TypeScript without its types, and columns of return types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core.errors import PlanError
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.json_mark import column_type
from penstock.transforms.sandbox.child import CodeError
from penstock.transforms.script.return_type import returned_columns
from penstock.transforms.script.typescript import without_types
from unit.transforms.sandboxed import make, run


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("let a: number = 1 as any as number;", "let a = 1;"),
        ("const f = <T,>(a?: T, ...b: T[]): T => a!;", "const f = (a , ...b) => a;"),
        ("interface A { a: string }\nlet b;", ";\nlet b;"),
        ("type A = {\n a: 1 };\nf<A>(b satisfies A);", ";\n\nf(b );"),
        ("export default function f(this: A, a: B): a is C {}", "function f( a) {}"),
        ("export const a = 1; export { a };", "const a = 1; ;"),
        ("declare const a: any; declare function f(): void;", "; ;"),
        ("function f(a: string): void;\nfunction f(a: any) {}", ";\nfunction f(a) {}"),
        ("abstract class A<T> extends B<T> implements C { private readonly a: T = 1; b!: T; "
         "declare c: T; d?(): void {} abstract e(): T; static override f = 1; [k: string]: T }",
         "class A extends B { a = 1; b; ; d() {} ; static f = 1; }"),
        ("const f = (a: {b: (c: number) => void}): {\n d: string\n} => ({d: a});",
         "const f = (a \n\n) => ({d: a});"),
        ("let é: string = '😀' as string; x! + y;", "let é = '😀'; x + y;"),
        ("a ? b : c; !a; a?.b; a != b; ({a: b}); for (const x of y as any[]) {}",
         "a ? b : c; !a; a?.b; a != b; ({a: b}); for (const x of y ) {}"),
        ("let a = b as const; try {} catch (e: unknown) {}", "let a = b ; try {} catch (e) {}"),
    ],
)  # fmt: skip
def test_types_become_spaces(code: str, expected: str) -> None:
    erased = without_types(code)
    assert len(erased) == len(code) and erased.count("\n") == code.count("\n")
    assert "".join(erased.split()) == "".join(expected.split())


@pytest.mark.parametrize(
    ("code", "message", "place"),
    [
        ("\n  enum A { B }", "an enum is not supported", (2, 3)),
        ("namespace A { export const b = 1 }", "a namespace is not supported", (1, 1)),
        ("import {a} from 'b';", "import is not supported", (1, 1)),
        ("class A { constructor(public a: string) {} }", "a parameter property", (1, 23)),
        ("let a = <string>b;", "a type in front of an expression", (1, 9)),
        ("@dec class A {}", "a decorator is not supported", (1, 1)),
        ("export * from 'a';", "an export of another module", (1, 1)),
    ],
)
def test_syntax_that_cannot_be_erased_is_an_error(
    code: str, message: str, place: tuple[int, int]
) -> None:
    with pytest.raises(CodeError, match=message) as caught:
        without_types(code)
    assert (caught.value.line, caught.value.column) == place


TYPES = """
interface Base { readonly id: number; name?: string | null }
type Kind = "a" | "b" | `c${string}`;
export interface Row extends Base {
  kind: Kind; n: bigint; m: number | bigint; ok: true | false; at: Date | undefined;
  data: Uint8Array; tags: readonly string[]; sets: Set<number>; map: Record<string, Date>;
  "deep name": {a: Array<{b: boolean}>}; any: unknown; amount: string;
}
"""


def names_and_types(schema: pa.Schema | None) -> dict[str, str]:
    assert schema is not None
    return {field.name: column_type(field) for field in schema}


@pytest.mark.parametrize(
    "result", ["Row", "Row | null", "(Row | null)[]", "Array<Row>", "Readonly<Row>", "{} & Row"]
)
def test_columns_of_a_return_type(result: str) -> None:
    code = f"{TYPES}\nfunction process(input: any): {result} {{ return input; }}"
    found = names_and_types(returned_columns(code, "process", arrow_schema("amount DECIMAL(9,2)")))
    assert found == {
        "id": "DOUBLE", "name": "STRING", "kind": "STRING", "n": "BIGINT", "m": "BIGINT",
        "ok": "BOOLEAN", "at": "TIMESTAMP", "data": "BINARY", "tags": "ARRAY<STRING>",
        "sets": "ARRAY<DOUBLE>", "map": "MAP<STRING, TIMESTAMP>",
        "deep name": "STRUCT<a: ARRAY<STRUCT<b: BOOLEAN>>>", "any": "VARIANT",
        "amount": "DECIMAL(9, 2)",
    }  # fmt: skip


def test_a_property_keeps_the_type_of_the_column_of_its_name() -> None:
    columns = arrow_schema(
        "a INT, b DATE, c STRING, d ARRAY<INT>, e STRUCT<f: FLOAT>, g BINARY, h MAP<STRING, INT>"
    )
    code = (
        "const process = (input: any): {a: number, b: string, c: number, d: number[],"
        " e: {f: number}, g: string, h: Record<string, number>} => input"
    )
    found = names_and_types(returned_columns(code, "process", columns))
    assert found == {
        "a": "INT", "b": "DATE", "c": "DOUBLE", "d": "ARRAY<INT>", "e": "STRUCT<f: FLOAT>",
        "g": "STRING", "h": "MAP<STRING, INT>",
    }  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        "function process(input) { return input }",
        "function process(input): any { return input }",
        "function process(input): null { return null }",
        "function other(input): {a: string} { return input }",
    ],
)
def test_without_a_return_type_there_are_no_columns(code: str) -> None:
    assert returned_columns(code, "process", pa.schema([])) is None


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("{a: string | number}", "a column has one type"),
        ("{a: [number]}", "is not an object"),
        ("{a: Foo}", "Foo is not an object"),
        ("{a: A}", "a type refers to itself"),
        ("Promise<{a: string}>", "is not an object"),
        ("{a: string} | {b: string}", "a row has one type"),
        ("{[key: string]: string}", "a row has named properties"),
        ("{a}", "a property has no type"),
        ("string", "string is not an object"),
    ],
)
def test_types_without_columns_are_errors_at_their_place(result: str, message: str) -> None:
    code = f"interface A {{ a: A }}\nfunction process(input): {result} {{ return input }}"
    with pytest.raises(CodeError, match=message) as caught:
        returned_columns(code, "process", pa.schema([]))
    assert "declare the columns in schema" in caught.value.message
    assert caught.value.line in (1, 2) and caught.value.column >= 1


@pytest.mark.slow
def test_a_script_in_typescript(tmp_path: Path) -> None:
    file = tmp_path / "total.ts"
    file.write_text(
        "interface Out { id: number; total: number }\n"
        "export function process(input: {id: number}): Out[] | null {\n"
        "  if (input.id === 2) return null;\n"
        "  return [{id: input.id, total: (input.id as number)! * 1.5}];\n"
        "}\n"
    )
    rows, dead_letters = run(tmp_path, "script", file=str(file))
    assert rows == [{"id": 1, "total": 1.5}, {"id": 3, "total": 4.5}] and dead_letters == {}
    assert make("script", file=str(file)).warnings() == ()


def test_unknown_columns_are_a_warning() -> None:
    code = "function process(input) { return input }"
    (warning,) = make("script", code=code).warnings()
    assert "are assumed to be those of its input" in str(warning)
    assert make("script", code=code, schema="a INT").warnings() == ()


def test_an_unsupported_type_is_an_error_of_the_option() -> None:
    code = "function process(input: any): [number] { return input }"
    with pytest.raises(PlanError, match="the columns of the output are not known"):
        make("script", code=code, language="typescript").validate()
