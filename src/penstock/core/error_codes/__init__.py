"""The register of error codes: every code of Penstock with its meaning.

Other codes are those of external systems: `http-` with the status of a response as in `http-404`,
Spark's error conditions as in `divide-by-zero`, and the names of Kafka's errors as in
`leader-not-available`.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.error_codes.external import EXTERNAL_CODES
from penstock.core.error_codes.records import RECORD_CODES
from penstock.core.error_codes.server import SERVER_CODES
from penstock.core.error_codes.state import STATE_CODES
from penstock.core.error_codes.user import USER_CODES

ERROR_CODES: Mapping[str, str] = dict(
    sorted({**USER_CODES, **EXTERNAL_CODES, **RECORD_CODES, **STATE_CODES, **SERVER_CODES}.items())
)
"""The meaning of each code, in one sentence."""
