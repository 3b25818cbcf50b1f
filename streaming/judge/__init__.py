"""A group's records to the rows of its tables: one line of a pipe, through the codec and the core that the job runs."""

from __future__ import annotations

from streaming.judge.jsonl import judge_line

__all__ = ["judge_line"]
