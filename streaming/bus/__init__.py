"""The bus: what holds the probe's events and rounds, as logs whose records are numbered without a gap.

It has two carriers. A Kafka holds them in two topics, which `record_batches.RangeReader` reads; a folder, on a disk or
an object store, holds them as objects. Who reads sees a `TopicReader`, and not which of the two it is.
"""

from __future__ import annotations

from streaming.bus.folder import BusFolderError, FolderObjects
from streaming.bus.log import Appended, FolderLog
from streaming.bus.reader import FolderReader, TopicReader

__all__ = ["Appended", "BusFolderError", "FolderLog", "FolderObjects", "FolderReader", "TopicReader"]
