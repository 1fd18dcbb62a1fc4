"""What a receiving source was given, on disk: appended by one process, read by any."""

from penstock.journal.message import RECEIVED, Message
from penstock.journal.reader import JournalReader
from penstock.journal.writer import Bounds, Journal

__all__ = ["RECEIVED", "Bounds", "Journal", "JournalReader", "Message"]
