"""Options of the client for the credentials of MongoDB.

Sources: https://www.mongodb.com/docs/languages/python/pymongo-driver/current/security/authentication/aws-iam/
and https://www.mongodb.com/docs/languages/python/pymongo-driver/current/security/authentication/oidc/
"""

from __future__ import annotations

from typing import Any

from penstock.connectors.mongodb.config import MongodbAuth
from penstock.core.errors import MissingExtra
from penstock.core.known_secrets import remember_secret
from penstock.core.secret import revealed
from penstock.sdk.network.identity_tokens import azure_token, google_identity_token


def auth_options(auth: MongodbAuth) -> dict[str, Any]:
    """Returns the options of the client. Raises MissingExtra."""
    if auth.identity is None:
        return {
            "username": auth.username,
            "password": revealed(auth.password),
            "authSource": auth.database,
        }
    if auth.identity == "aws":
        try:
            import pymongo_auth_aws  # noqa: F401
        except ImportError:
            raise MissingExtra.of("aws", "pymongo-auth-aws") from None
        return {"authMechanism": "MONGODB-AWS"}
    return {
        "authMechanism": "MONGODB-OIDC",
        "authMechanismProperties": {"OIDC_CALLBACK": _callback(auth)},
    }


def _callback(auth: MongodbAuth) -> Any:
    """Returns the object that the client calls for a token.

    The environments of the client itself do not have App Service and workload identity, and their
    errors are not those of authentication.
    """
    from pymongo.auth_oidc_shared import OIDCCallback, OIDCCallbackContext, OIDCCallbackResult

    audience = str(auth.audience)

    class IdentityToken(OIDCCallback):
        def fetch(self, context: OIDCCallbackContext) -> OIDCCallbackResult:
            if auth.identity == "azure":
                text = azure_token(audience, auth.client_id).text
            else:
                text = google_identity_token(audience)
            remember_secret(text)
            return OIDCCallbackResult(access_token=text)

    return IdentityToken()
