"""The lines of `evenkeel assign` and `evenkeel what-if`: one JSON object in, one out."""

from __future__ import annotations

from assignors.jsonl.answers import assign_line, what_if_line
from assignors.jsonl.lines import (
    BadLine,
    write_allocate_line,
    write_client_line,
    write_server_line,
    write_streams_line,
)

__all__ = [
    "BadLine",
    "assign_line",
    "what_if_line",
    "write_allocate_line",
    "write_client_line",
    "write_server_line",
    "write_streams_line",
]
