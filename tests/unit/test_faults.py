"""The register of planted faults: each fault can be planted, and its test exists."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "faults"))

from register import ROOT, SOURCE, RegisterError, faults


@pytest.mark.slow
def test_each_fault_can_be_planted() -> None:
    wrong, names = [], set()
    for fault in faults():
        names.add(fault.name)
        try:
            changed = fault.changed(SOURCE)
            ast.parse(changed)
        except (RegisterError, SyntaxError) as error:
            wrong.append(f"{fault.name}: {error}")
    assert not wrong, "\n".join(wrong)
    assert len(names) >= 150


def test_the_tests_of_faults_exist() -> None:
    missing = []
    for fault in faults():
        file, _, function = fault.test.partition("::")
        path = ROOT / file
        if not path.exists() or (function and f"def {function}(" not in path.read_text("utf-8")):
            missing.append(f"{fault.name}: {fault.test}")
    assert not missing, "\n".join(missing)
