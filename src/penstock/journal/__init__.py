"""The journal of a receiving source: a durable log with one writer and many readers."""

from penstock.journal.bounds import Bounds
from penstock.journal.message import RECEIVED, REJECTED_SIZE, Message, Messages
from penstock.journal.reader import JournalReader
from penstock.journal.writer import Journal

__all__ = ["RECEIVED", "REJECTED_SIZE", "Bounds", "Journal", "JournalReader", "Message", "Messages"]
