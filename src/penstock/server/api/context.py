"""Parts of the server that routes use."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from penstock.server.service import Service
from penstock.server.store.accounts import Accounts
from penstock.server.store.audit import Audit


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _accounts(request: Request) -> Accounts:
    accounts: Accounts = request.app.state.accounts
    return accounts


def _audit(request: Request) -> Audit:
    audit: Audit = request.app.state.audit
    return audit


TheService = Annotated[Service, Depends(_service)]
TheAccounts = Annotated[Accounts, Depends(_accounts)]
TheAudit = Annotated[Audit, Depends(_audit)]
