"""Parts of message connectors: framing, packing, writers that await acknowledgements."""
