"""Application of manifests by kubectl."""

from __future__ import annotations

import shutil
import subprocess

from penstock.core.errors import Permanent, UserError

PROGRAM = "kubectl"
_ARGUMENTS = ("apply", "--server-side", "-f", "-")
"""Applied by the server: the client stores the manifest in an annotation of at most 256 KiB."""


def require_kubectl() -> str:
    """Returns the path of kubectl. Raises UserError without it."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise UserError(
            "kubectl is not installed, or not in PATH", code="missing-program",
            hint="Install kubectl, or print the manifests without --apply.",
        )  # fmt: skip
    return program


def apply_manifests(text: str) -> None:
    """Applies manifests to the cluster of kubectl's context. Raises Permanent if that fails."""
    done = subprocess.run([require_kubectl(), *_ARGUMENTS], input=text.encode())
    if done.returncode:
        raise Permanent(
            f"kubectl ended with {done.returncode}", code="kubectl-failed",
            hint="The message of kubectl is above.",
        )  # fmt: skip
