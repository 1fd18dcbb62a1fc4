"""TypeScript to JavaScript: types become spaces, so that all positions stay.

The code may have the syntax that can be erased, as `erasableSyntaxOnly` of TypeScript and Node.js
demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.transforms.script.syntax import child, error_at, parse, span

if TYPE_CHECKING:
    from ast_grep_py import SgNode

_TYPES = {
    "type_annotation", "type_parameters", "type_arguments", "implements_clause",
    "accessibility_modifier", "override_modifier", "type_predicate_annotation",
    "asserts_annotation", "index_signature", "abstract_method_signature", "method_signature",
}  # fmt: skip
_STATEMENTS = {
    "interface_declaration", "type_alias_declaration", "ambient_declaration", "function_signature",
}  # fmt: skip
_TOKENS = {"readonly", "declare", "abstract", "override", "?", "!"}
_WITH_TOKENS = {
    "public_field_definition", "method_definition", "optional_parameter", "required_parameter",
    "abstract_class_declaration", "variable_declarator", "non_null_expression",
}  # fmt: skip
_CASTS = {"as_expression", "satisfies_expression"}
_UNSUPPORTED = {
    "enum_declaration": "an enum is not supported; use an object",
    "internal_module": "a namespace is not supported",
    "module": "a module declaration is not supported",
    "import_statement": "import is not supported: the code is one script",
    "import_alias": "import is not supported: the code is one script",
    "type_assertion": "a type in front of an expression is not supported; use as",
    "decorator": "a decorator is not supported",
}


def without_types(code: str) -> str:
    """Returns TypeScript with spaces in place of types. Raises CodeError for other syntax."""
    eraser = _Eraser(code)
    eraser.visit(parse(code))
    return "".join(eraser.characters)


class _Eraser:
    """The characters of a code, with types erased."""

    def __init__(self, code: str) -> None:
        self.characters = list(code)
        self._kept: set[int] = set()

    def visit(self, node: SgNode) -> None:
        """Erases the types within a node."""
        kind = node.kind()
        if kind in _UNSUPPORTED:
            raise error_at(node, _UNSUPPORTED[kind])
        if kind in _TYPES:
            self._erase(*span(node))
        elif kind in _STATEMENTS:
            self._erase_statement(node)
        elif kind == "export_statement":
            self._export(node)
        elif kind == "public_field_definition" and child(node, "declare"):
            self._erase(*span(node))
        elif kind in _CASTS:
            first = node.children()[0]
            self.visit(first)
            self._erase(span(first)[1], span(node)[1])
        else:
            self._visit_parts(node, kind)

    def _visit_parts(self, node: SgNode, kind: str) -> None:
        if kind == "required_parameter":
            self._parameter(node)
        if kind == "arrow_function":
            self._keep_arrow(node)
        for each in node.children():
            if kind in _WITH_TOKENS and each.kind() in _TOKENS:
                self._erase(*span(each))
            else:
                self.visit(each)

    def _export(self, node: SgNode) -> None:
        """Erases the word in front of a declaration: the code is no module."""
        for each in node.children():
            if each.kind() in {"export", "default"}:
                self._erase(*span(each))
            elif each.kind() == "export_clause":
                self._erase_statement(node)
                return
            elif each.kind() in {"from", "*"}:
                raise error_at(node, "an export of another module is not supported")
            else:
                self.visit(each)

    def _parameter(self, node: SgNode) -> None:
        modifier = child(node, "accessibility_modifier", "readonly", "override_modifier")
        if modifier is not None:
            raise error_at(modifier, "a parameter property is not supported; assign to this")
        if child(node, "this"):
            start, stop = span(node)
            following = node.next()
            comma = following is not None and following.kind() == ","
            self._erase(start, span(following)[1] if comma and following else stop)

    def _keep_arrow(self, node: SgNode) -> None:
        """Moves the bracket of the parameters to the end of a return type with line breaks.

        JavaScript has no line break in front of the arrow.
        """
        parameters, type_ = child(node, "formal_parameters"), child(node, "type_annotation")
        if parameters is None or type_ is None or "\n" not in type_.text():
            return
        self._erase(*span(type_))
        self.characters[span(parameters)[1] - 1] = " "
        end = span(type_)[1] - 1
        self.characters[end] = ")"
        self._kept |= {end, span(parameters)[1] - 1}

    def _erase_statement(self, node: SgNode) -> None:
        start, stop = span(node)
        self._erase(start, stop)
        self.characters[start] = ";"

    def _erase(self, start: int, stop: int) -> None:
        for index in range(start, stop):
            if self.characters[index] not in "\r\n" and index not in self._kept:
                self.characters[index] = " "
