"""Files on disk: durable, private, and no pipes or devices in place of files."""
