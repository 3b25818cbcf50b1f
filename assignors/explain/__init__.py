"""Who should own what, in words: the rule, and for each member what it keeps, gets and gives up.

from assignors.explain import explain_line

members = {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}}
line = {"strategy": "range", "partitions_per_topic": {"t": 3}, "members": members}
explain_line(line).sentences()
"""

from __future__ import annotations

from assignors.assignment import PartitionId
from assignors.explain.explanation import Explanation
from assignors.explain.lines import explain_line

__all__ = ["Explanation", "PartitionId", "explain_line"]
