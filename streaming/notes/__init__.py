"""Notes that people leave for the alerter and the page: mutes of alerts, and marks of what they did."""

from __future__ import annotations

from streaming.notes.book import (
    GROUP,
    KINDS,
    LONGEST_TEXT,
    OWNER,
    REPEATS_MS,
    RULE,
    SEVERITY,
    Mark,
    Mute,
    NoteBook,
    clusters_of,
    muting,
    note_of,
    whole,
    write_note,
)
from streaming.notes.commands import KnownNames, checked_mark, mark, mute, print_mutes, unmute

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
