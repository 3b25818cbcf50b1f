"""Exact recomputation of the task assignor of streams groups (KIP-1071), which the group coordinator runs.

from assignors.streams import StreamsGroup, StreamsMember, Subtopology, assign_tasks

group = StreamsGroup((StreamsMember("a", "p"), StreamsMember("b", "q")), (Subtopology("0", 2, stateful=True),), 1)
assign_tasks(group, "4.3.1").standby  # {"a": {"0": [1]}, "b": {"0": [0]}}
"""

from __future__ import annotations

from assignors.streams.model import StreamsGroup, StreamsMember, Subtopology, TaskAssignment, Tasks
from assignors.streams.sticky import STREAMS_ERAS, assign_tasks

__all__ = [
    "STREAMS_ERAS",
    "StreamsGroup",
    "StreamsMember",
    "Subtopology",
    "TaskAssignment",
    "Tasks",
    "assign_tasks",
]
