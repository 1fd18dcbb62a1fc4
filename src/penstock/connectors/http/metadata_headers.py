"""Headers of messages in metadata: all headers except credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping

_CREDENTIALS = re.compile(
    r"(proxy-)?authorization|(set-)?cookie2?"
    r"|.*(api-?key|(access|auth|client|functions|subscription)-key|token|secret|passw|credential).*"
)


def without_credentials(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns headers under names in lower case, without cookies, keys, tokens and passwords."""
    pairs = ((name.lower(), value) for name, value in headers.items())
    return [(name, value) for name, value in pairs if not _CREDENTIALS.fullmatch(name)]
