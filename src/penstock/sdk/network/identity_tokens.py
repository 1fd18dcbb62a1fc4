"""Tokens of Azure and of Google Cloud for the identity of a machine or a pod.

Sources: https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token,
https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow,
https://cloud.google.com/sql/docs/postgres/iam-authentication and
https://cloud.google.com/compute/docs/instances/verifying-instance-identity
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

from penstock.core.errors import Permanent, Transient
from penstock.core.known_secrets import remember_secret

_AUTHORITY = "https://login.microsoftonline.com"
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TIMEOUT_SECONDS = 10.0
_TOO_MANY_REQUESTS, _SERVER_ERROR = 429, 500
_SHOWN = 400


class Token(NamedTuple):
    """A token, and the time in seconds since 1970 at which it expires."""

    text: str
    expires: float


def azure_token(resource: str, client_id: str | None) -> Token:
    """Returns a token of the workload identity of AKS, of App Service, or of the machine.

    Raises Transient or Permanent.
    """
    token_file = os.environ.get("AZURE_FEDERATED_TOKEN_FILE")
    if token_file is not None:
        return _exchanged(Path(token_file), resource, client_id)
    query = {"resource": resource, **({"client_id": client_id} if client_id else {})}
    endpoint = os.environ.get("IDENTITY_ENDPOINT")
    if endpoint is not None:
        query["api-version"] = "2019-08-01"
        headers = {"X-IDENTITY-HEADER": os.environ.get("IDENTITY_HEADER", "")}
    else:
        host = os.environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://169.254.169.254")
        endpoint = f"{host.rstrip('/')}/metadata/identity/oauth2/token"
        query["api-version"] = "2018-02-01"
        headers = {"Metadata": "true"}
    return _token("azure", Request(f"{endpoint}?{urlencode(query)}", headers=headers))


def _exchanged(token_file: Path, resource: str, client_id: str | None) -> Token:
    """Returns the token of Microsoft Entra for the token of a service account of Kubernetes.

    The kubelet replaces the file, which is therefore read for each exchange.
    """
    client_id = client_id or _variable("AZURE_CLIENT_ID", "auth.client_id, or ")
    url = f"{_authority()}/{_variable('AZURE_TENANT_ID')}/oauth2/v2.0/token"
    try:
        assertion = token_file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise rejected("azure", f"cannot read AZURE_FEDERATED_TOKEN_FILE: {error}") from None
    remember_secret(assertion)
    form = {
        "grant_type": "client_credentials", "client_id": client_id,
        "scope": f"{resource}/.default", "client_assertion_type": _ASSERTION_TYPE,
        "client_assertion": assertion,
    }  # fmt: skip
    request = Request(url, data=urlencode(form).encode(), method="POST")
    return _token("azure", request, by_proxy=True)


def _authority() -> str:
    host = os.environ.get("AZURE_AUTHORITY_HOST") or _AUTHORITY
    url = (host if "://" in host else f"https://{host}").rstrip("/")
    if not url.startswith("https://"):
        raise Permanent(
            f"expected https://HOST in AZURE_AUTHORITY_HOST, found {host}", code="authentication",
            hint=f"Set the environment variable AZURE_AUTHORITY_HOST to {_AUTHORITY}, or unset it.",
        )  # fmt: skip
    return url


def _variable(name: str, option: str = "") -> str:
    value = os.environ.get(name)
    if not value:
        raise Permanent(
            f"no {name} for the workload identity of this pod", code="authentication",
            hint=f"Set {option}the environment variable {name}, which AKS sets in pods with the "
            "label azure.workload.identity/use.",
        )  # fmt: skip
    return value


def google_token() -> Token:
    """Returns an access token of the metadata server, which is also that of a pod of GKE.

    Raises Transient or Permanent.
    """
    return _token("google", _google_request("token"))


def google_identity_token(audience: str) -> str:
    """Returns a signed statement of the identity for an audience. Raises Transient or Permanent."""
    content = _response("google", _google_request(f"identity?{urlencode({'audience': audience})}"))
    text = content.decode(errors="replace").strip()
    if not text:
        raise rejected("google", "the response has no token")
    return text


def _google_request(name: str) -> Request:
    host = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/{name}"
    return Request(url, headers={"Metadata-Flavor": "Google"})


def _token(identity: str, request: Request, *, by_proxy: bool = False) -> Token:
    """Returns the token in the response to a request."""
    now = time.time()
    content = _response(identity, request, by_proxy=by_proxy)
    try:
        found: Any = json.loads(content)
        expires = float(found.get("expires_on") or now + float(found["expires_in"]))
        return Token(str(found["access_token"]), expires)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise rejected(identity, "the response has no token") from None


def _response(identity: str, request: Request, *, by_proxy: bool = False) -> bytes:
    """Returns the content of a response. A service of the machine is not requested by a proxy."""
    opener = build_opener() if by_proxy else build_opener(ProxyHandler({}))
    try:
        with opener.open(request, timeout=_TIMEOUT_SECONDS) as response:
            content: bytes = response.read()
            return content
    except HTTPError as error:
        reason = f"HTTP {error.code}: {error.read(_SHOWN).decode(errors='replace')}"
        if error.code == _TOO_MANY_REQUESTS or error.code >= _SERVER_ERROR:
            raise unavailable(identity, reason) from None
        raise rejected(identity, reason) from None
    except OSError as error:
        raise unavailable(identity, str(error)) from None


def unavailable(identity: str, reason: str) -> Transient:
    """Returns the error of a service that does not respond, or cannot."""
    return Transient(
        f"could not obtain a token of the identity of this machine ({identity}): {reason}",
        code="unreachable",
        hint=f"Run the pipeline on a machine of the cloud {identity} that has an identity.",
    )


def rejected(identity: str, reason: str) -> Permanent:
    """Returns the error of an identity without a token."""
    return Permanent(
        f"cannot obtain a token of the identity of this machine ({identity}): {reason}",
        code="authentication",
        hint="Assign an identity to the machine or the pod, and permit it to log in to the "
        "database.",
    )
