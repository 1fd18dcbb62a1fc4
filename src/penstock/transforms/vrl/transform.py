"""The transform `vrl`: a program in Vector Remap Language."""

from __future__ import annotations

from penstock.transforms.sandbox.transform import SandboxConfig, SandboxTransform


class VrlConfig(SandboxConfig):
    code: str | None = None
    """The program."""


class Vrl(SandboxTransform[VrlConfig]):
    """A program in Vector Remap Language (VRL), which changes each row as an event.

    The rows of the output are the event `.` at the end of the program: an object, or an array of
    objects. `abort` drops the row, and `abort "message"` makes it a dead letter. The columns of the
    output are those of `schema`, or otherwise those of the input.

    The program has no environment. The functions `dns_lookup`, `http_request` and those of
    enrichment tables do not exist. A row on which it fails, exceeds `timeout` or needs more than
    `max_memory` becomes a dead letter.

    DECIMAL, times, BINARY (base64), NaN and infinity are text.

    The client library pyvrl has had no release since 2025, and compiles version 0.15 of VRL.

    Parallel by partition, without state.

    ```yaml
    type: vrl
    from: logs
    schema: host STRING, level STRING, status INT
    code: |
      . = parse_json!(.message)
      .level = downcase!(.level)
      if .level == "debug" { abort }
    ```
    """

    engine = "penstock.transforms.vrl.engine:VrlEngine"
    label = "the program is not valid"
    extra = "vrl"
    client_modules = ("pyvrl",)
