"""Parts that several connectors share."""
