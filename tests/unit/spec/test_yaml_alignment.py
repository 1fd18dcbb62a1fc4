"""Places of the characters of a YAML text in its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from penstock import app
from penstock.core.errors import PenstockError
from penstock.spec.tree.align import align

TEXTS = {
    "escaped line ends": r'"import os\n\ndef f():\n    x = (\n"',
    "continued lines": '"import os\\n\\\n  \\ndef f():\\n\\\n  \\    return (\\n"',
    "an escape after a fold": '"def f():\\n\n  \\n\n  x = (\\n"',
    "an escape after blank lines": '"a  \n  \\  b\\n\n \n  c \\t d"',
    "an escape first": '"\\n\n  def f():\n  \\n return"',
    "a blank line first": '"\n\n x\\n y"',
    "carriage returns": '"a\\n\r\n\r\n  b\\n c"',
    "single quotes": "'it''s\n  folded\n\n  twice'",
    "plain": "a\n  b\n\n  c",
    "literal": "|\n  a\n\n    b\n  c\n",
    "folded": ">\n  a\n  b\n\n    c\n  d\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_characters_have_their_places(text: str) -> None:
    document = f"key: {text}"
    value = yaml.safe_load(document)["key"]
    start = len("key: |\n" if text[0] in "|>" else "key: ")
    indexes = align(value, document, start, len(document))
    assert len(indexes) == len(value) + 1
    for character, index in zip(value, indexes, strict=False):
        found = document[index]
        assert found in (character, "\\") or (character.isspace() and found.isspace())


def test_an_error_of_folded_code_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(
        "name: shop\nsources: {s: {type: memory, schema: id LONG, rows: []}}\n"
        "transforms:\n  t:\n    type: python\n    from: s\n"
        '    code: "import os\\n\n\n      \\ndef transform(batch):\\n\n\n      \\  return (\\n"\n'
        "sinks: {o: {type: memory, from: t}}\n"
    )
    with pytest.raises(PenstockError) as raised:
        app.plan(path)
    assert raised.value.where is not None
    assert (raised.value.where.line, raised.value.where.column) == (11, 17)
