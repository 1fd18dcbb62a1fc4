"""Identity of processes. Linux numbers processes again, so that a number alone identifies none."""

from __future__ import annotations

from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START_TIME = 19
"""The index of `starttime` among the fields of `/proc/PID/stat` after the name; see proc(5)."""


def process_identity(pid: int) -> str | None:
    """Returns the boot and the start time of a process, which no other process shares.

    None without the process, and on a system without `/proc`.
    """
    try:
        boot = _BOOT.read_text().strip()
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot}:{fields[_START_TIME - 1]}"
