"""Files of Arroyo: paths and credentials of object stores, patterns, and the intervals of sinks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from penstock.core.units import seconds
from penstock.spec.dialects.arroyo.option_rules import Key, Rules, Unsupported, Value
from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import ScalarNode

TIME_PATTERN = "partitioning.time_pattern"
_PATTERN = "source.regex_pattern"
_INTERVAL, _INACTIVITY = "rolling_policy.interval", "rolling_policy.inactivity_interval"
_FORMS = (
    (r"s3::(?P<endpoint>https?://[^/]+)/(?P<rest>.+)", "s3"),
    (r"r2://(?P<account>[^/@]+)@(?P<rest>.+)", "s3"),
    (r"https://(?P<account>[^/.]+)\.r2\.cloudflarestorage\.com/(?P<rest>.+)", "s3"),
    (r"https://s3\.(?:(?P<region>[\w-]+)\.)?amazonaws\.com/(?P<rest>.+)", "s3"),
    (
        r"https://(?P<bucket>[^/]+?)\.s3\.(?:(?P<region>[\w-]+)\.)?amazonaws\.com(?P<rest>/.*)?",
        "s3",
    ),
    (r"https://(?P<bucket>[^/]+)\.storage\.googleapis\.com(?P<rest>/.*)?", "gs"),
    (r"https://storage\.googleapis\.com/(?P<rest>.+)", "gs"),
)
"""The forms of a path, and the scheme of its URL."""
_CLOUDFLARE = "https://{}.r2.cloudflarestorage.com"
_GOOGLE = Unsupported(
    "write the key to a file, and set storage.google_service_account_path",
    "the key of a service account is a file",
)
_AZURE = Unsupported(
    "set AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID in the environment",
    "credentials of an application of Azure come from the environment",
)


def _spelled(*names: str) -> list[str]:
    """Returns the names with and without the prefix `aws_`."""
    return [f"storage.{prefix}{name}" for name in names for prefix in ("aws_", "")]


_SPELLINGS = {
    "endpoint_url": {*_spelled("endpoint", "endpoint_url")},
    "region": {*_spelled("region", "default_region")},
}

STORAGE: Rules = {
    **dict.fromkeys(_spelled("access_key_id"), Key("storage.auth.access_key")),
    **dict.fromkeys(_spelled("secret_access_key"), Key("storage.auth.secret_key")),
    **dict.fromkeys(_spelled("session_token", "token"), Key("storage.auth.session_token")),
    **dict.fromkeys(_spelled("region", "default_region"), Key("storage.region")),
    **dict.fromkeys(_spelled("endpoint", "endpoint_url"), Key("storage.endpoint_url")),
    **dict.fromkeys(
        _spelled("skip_signature"), Key("storage.anonymous", {"true": True, "false": ""})
    ),
    **dict.fromkeys(_spelled("allow_http"), Key("", {"true": "", "false": ""})),
    **dict.fromkeys(
        _spelled("virtual_hosted_style_request"),
        Key("", {"false": "", "true": Unsupported(
            "remove the option, if the server accepts the bucket in the path as well",
            "with an endpoint the bucket is part of the path",
        )}),
    ),
    **dict.fromkeys(
        [f"storage.{name}" for name in (
            "google_service_account", "google_service_account_path", "service_account",
            "google_application_credentials",
        )],
        Key("storage.auth.service_account"),
    ),
    "storage.google_service_account_key": _GOOGLE,
    "storage.azure_storage_account_name": Key("storage.account"),
    "storage.azure_storage_account_key": Key("storage.auth.account_key"),
    "storage.azure_storage_sas_key": Key("storage.auth.sas_token"),
    **dict.fromkeys(
        [f"storage.azure_storage_{name}" for name in ("client_id", "client_secret", "tenant_id")],
        _AZURE,
    ),
}  # fmt: skip
"""The options of object stores."""


def combine_files(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with a URL, and with the shorter one of two intervals.

    A file that is visible after an interval is visible after the same time without rows, too.
    """
    options = [_with_backslashes(option) for option in _combine_path(options, table)]
    named = {option.name: option for option in options}
    interval, inactivity = named.get(_INTERVAL), named.get(_INACTIVITY)
    if inactivity is None:
        return options
    others = [option for option in options if option not in (interval, inactivity)]
    shortest = min(filter(None, (interval, inactivity)), key=_seconds)
    path = [shortest.path[0], shortest.path[-1]._replace(value="interval")]
    return [*others, replace(shortest, path=path)]


def has_time_pattern(options: Sequence[Option]) -> bool:
    """Returns whether the directories of a sink depend on the event time.

    The directories of a table of Delta Lake have no meaning: its log names the files.
    """
    named = {option.name: option.value for option in options}
    connector = named.get("connector")
    is_table = isinstance(connector, ScalarNode) and connector.value == "delta"
    return TIME_PATTERN in named and not is_table


def suffix_of(extension: str) -> Value:
    """Returns the suffix of files with an extension, which Arroyo writes without its dot."""
    return f".{extension.strip().removeprefix('.')}"


def _with_backslashes(option: Option) -> Option:
    """Returns a regular expression as it is written: a backslash in a text begins no escape."""
    node = option.value
    if option.name != _PATTERN or not isinstance(node, ScalarNode) or node.span is None:
        return option
    written = node.span.file.text[node.span.start : node.span.end]
    text = written.strip("'").replace("''", "'")
    if "\\" not in text or "{{" in written:
        return option
    return replace(option, value=replace(node, value=text, written=text, text=text, span=None))


def _seconds(option: Option) -> float:
    try:
        return seconds(option.value.written) if isinstance(option.value, ScalarNode) else 0.0
    except ValueError:
        return 0.0


def _combine_path(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with a URL for the path of an object store, and its endpoint."""
    option = next((option for option in options if option.name == "path"), None)
    if option is None or not isinstance(option.value, ScalarNode):
        return list(options)
    node = option.value
    forms = ((re.fullmatch(form, node.written.strip()), scheme) for form, scheme in _FORMS)
    match, scheme = next(((match, scheme) for match, scheme in forms if match), (None, ""))
    if match is None:
        return list(options)
    found = match.groupdict()
    account = found.get("account")
    url = _text(node, f"{scheme}://{found.get('bucket') or ''}{found.get('rest') or ''}")
    derived = {
        "endpoint_url": _CLOUDFLARE.format(account) if account else found.get("endpoint"),
        "region": "auto" if account else found.get("region"),
    }
    names = {each.name for each in options}
    return [
        *(replace(each, value=url) if each is option else each for each in options),
        *(
            _derived(option, f"storage.{name}", node, value)
            for name, value in derived.items()
            if value and not names & _SPELLINGS[name]
        ),
    ]


def _derived(option: Option, name: str, node: ScalarNode, value: str) -> Option:
    key = option.path[0]
    return Option([key._replace(value=part) for part in name.split(".")], _text(node, value))


def _text(node: ScalarNode, value: str) -> ScalarNode:
    return replace(node, value=value, written=value, text=value, span=None)
