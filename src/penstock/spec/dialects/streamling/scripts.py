"""Scripts of Streamling: one function expression, which cannot change the kind of a row."""

from __future__ import annotations

import re

from penstock.spec.dialects.streamling.queries import OPERATION
from penstock.spec.tree.nodes import ScalarNode

FUNCTION = "streamlingProcess"
_NAMED = re.compile(r"\s*(?:async\s+)?function\s+([A-Za-z_$][\w$]*)")
_START = "const process = "
_WRAPPER = """
function {function}(input) {{
  const operation = input.{operation}, names = Object.keys(input);
  const row = (value) => {{
    const kept = {{...value, {operation}: operation}};
    const others = Object.keys(kept).filter((name) => {closed} && !names.includes(name));
    for (const name of others) delete kept[name];
    return kept;
  }};
  const result = {name}(input);
  if (Array.isArray(result)) return result.filter((each) => each !== null).map(row);
  return result === null || typeof result !== "object" ? result : row(result);
}}
"""


def wrapped(script: ScalarNode, *, closed: bool) -> ScalarNode:
    """Returns a script that sets the kind of change of the input in each row of the output.

    The function has any name, or none. With `closed` rows have the columns of the input only.
    """
    written = script.written
    code = written.rstrip().removesuffix(";")
    match = _NAMED.match(code)
    start = "" if match else _START
    wrapper = _WRAPPER.format(
        function=FUNCTION, operation=OPERATION, name=match[1] if match else "process",
        closed="true" if closed else "false",
    )  # fmt: skip
    text = f"{start}{code}\n{wrapper}"
    origins = [0] * len(start) + list(range(len(code)))
    origins += [len(code)] * (len(text) + 1 - len(origins))
    return script.derived(text, origins)
