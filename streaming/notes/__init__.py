"""Notes that people leave for the alerter and the page: mutes of alerts, and marks of what they did."""

from __future__ import annotations

from streaming.notes.book import NoteBook, clusters_of, write_note
from streaming.notes.commands import KnownNames, checked_mark, mark, mute, print_mutes, unmute
from streaming.notes.kinds import (
    GROUP,
    KINDS,
    LONGEST_TEXT,
    OWNER,
    REPEATS_MS,
    RULE,
    SEVERITY,
    Mark,
    Mute,
    muting,
    note_of,
    whole,
)

__all__ = [
    "GROUP",
    "KINDS",
    "LONGEST_TEXT",
    "OWNER",
    "REPEATS_MS",
    "RULE",
    "SEVERITY",
    "KnownNames",
    "Mark",
    "Mute",
    "NoteBook",
    "checked_mark",
    "clusters_of",
    "mark",
    "mute",
    "muting",
    "note_of",
    "print_mutes",
    "unmute",
    "whole",
    "write_note",
]
