"""Who should own what and why, in words that are made from the computation itself.

from assignors.explain import explain_line

members = {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}}
line = {"strategy": "range", "partitions_per_topic": {"t": 3}, "members": members}
explain_line(line).sentences()
"""

from __future__ import annotations

from assignors.assignment import PartitionId
from assignors.explain.explanation import Explanation
from assignors.explain.lines import Candidate, candidates, explain_line
from assignors.explain.rocketmq import spellings

__all__ = ["Candidate", "Explanation", "PartitionId", "candidates", "explain_line", "spellings"]
