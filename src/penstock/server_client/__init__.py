"""Client of the API of `penstock serve`, for commands and programs."""

from penstock.server_client.answers import Draft, DraftCheck, ServedPipeline, ServedVersion
from penstock.server_client.client import ServerClient

__all__ = ["Draft", "DraftCheck", "ServedPipeline", "ServedVersion", "ServerClient"]
