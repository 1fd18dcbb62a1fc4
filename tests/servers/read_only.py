"""A process with a read-only root, as of a container with `readOnlyRootFilesystem`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from servers.spark import namespace

_CHECKOUT = Path(__file__).parents[2]
_OF_PENSTOCK = [path for path in (_CHECKOUT, Path(sys.prefix)) if path.is_relative_to("/tmp")]
"""The checkout and its environment, if they are below `/tmp`."""
_SCRIPT = """\
set -e
kept=$1 written=$2
shift 2
IFS=:
mount -t tmpfs tmpfs /mnt
for each in $kept; do
    mkdir -p "/mnt$each"
    mount --bind "$each" "/mnt$each"
done
mount -t tmpfs tmpfs /tmp
for each in $kept; do
    mkdir -p "$each"
    mount --bind "/mnt$each" "$each"
    umount "/mnt$each"
done
umount /mnt
for each in $written; do
    [ "$each" = /tmp ] && continue
    mkdir -p "$each"
    mount --bind "$each" "$each"
done
IFS='
'
for each in $(cut -d ' ' -f 5 /proc/self/mountinfo | sort -u); do
    case ":$written:" in *":$each:"*) continue ;; esac
    case $each in /proc*|/sys*|/dev*) ;; *) mount -o remount,bind,ro "$each" || true ;; esac
done
IFS=:
for each in /:$kept; do
    case ":$written:" in *":$each:"*) continue ;; esac
    if touch "$each/written" 2>/dev/null; then echo "$each is not read-only"; exit 1; fi
done
unset IFS
cd "$PWD"
exec "$@"
"""


def read_only(command: Sequence[str], kept: Sequence[str], written: Sequence[str]) -> list[str]:
    """Returns a command that runs another one with a read-only root and an empty `/tmp`.

    Directories that are `kept` remain visible, as those of Penstock do. Of these and of `/tmp`,
    the process writes only those in `written`.
    """
    for path in written:
        assert path == "/tmp" or any(Path(path).is_relative_to(each) for each in kept), path
    # A directory within another one is visible with it.
    ours = [f"{path}" for path in _OF_PENSTOCK if not {*path.parents} & {*_OF_PENSTOCK}]
    kept = [*kept, *ours]
    return [*namespace(), "sh", "-c", _SCRIPT, "pod", ":".join(kept), ":".join(written), *command]


def written_by(pod: Mapping[str, Any], claims: Sequence[str] = ()) -> Iterator[str]:
    """Yields the directories that the container of a pod may write.

    They are those of its empty volumes, and of its claims.
    """
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    empty = [each["name"] for each in pod["volumes"] if "emptyDir" in each]
    for mount in container["volumeMounts"]:
        if mount["name"] in (*empty, *claims):
            assert not mount.get("readOnly")
            yield mount["mountPath"]
