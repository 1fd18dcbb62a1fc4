"""Nodes that the user's file does not name: the queries of the statements of a script.

Their names count statements, as in `orders_query` and `orders_query_2`, so a statement before
another one takes its name. A definition identifies the query.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter

from penstock.core.known_secrets import conceal
from penstock.plan.fingerprint import definition_without_secrets
from penstock.plan.model import Plan

_NUMBER = re.compile(r"_\d+\Z")


class UnnamedNodes:
    """The definitions of the unnamed nodes of a plan.

    The definition of a node is a JSON list: a hash of the node, and the hashes of all nodes whose
    names differ only in their number.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._hashes: dict[str, str] = {}
        for name, node in plan.nodes.items():
            if not node.is_named:
                self._hash(name)

    def definition(self, name: str) -> str | None:
        """Returns the definition of a node, None for a node that the file names."""
        if name not in self._hashes:
            return None
        return json.dumps([self._hashes[name], *(self._hashes[each] for each in self._group(name))])

    def find(self, name: str, definition: str | None) -> str | None:
        """Returns the node that has, or replaces, a node of an earlier plan; None if it is unknown.

        A query that was edited in place is found if the other queries of its table are the same.
        """
        if definition is None or (name in self._plan.nodes and name not in self._hashes):
            return name
        own, *earlier = json.loads(definition)
        group = self._group(name)
        same = [each for each in group if self._hashes[each] == own]
        if same:
            return name if name in same else same[0]
        removed = Counter(earlier) - Counter(self._hashes[each] for each in group)
        added = [each for each in group if self._hashes[each] not in earlier]
        return added[0] if len(added) == 1 and removed.total() == 1 else None

    def _group(self, name: str) -> list[str]:
        base = _NUMBER.sub("", name)
        return [each for each in self._hashes if _NUMBER.sub("", each) == base]

    def _hash(self, name: str) -> str:
        """Returns the hash of a node, in which unnamed inputs have their hashes as names."""
        if name not in self._hashes:
            node = self._plan.nodes[name]
            text = conceal(json.dumps(definition_without_secrets(node), sort_keys=True))
            for input_ in node.inputs:
                if not self._plan.nodes[input_].is_named:
                    text = re.sub(rf"\b{re.escape(input_)}\b", self._hash(input_), text)
            self._hashes[name] = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self._hashes[name]
