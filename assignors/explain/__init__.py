"""Who should own what and why, in words that are checked against the assignment.

from assignors.explain import explain_line

members = {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}}
line = {"strategy": "range", "partitions_per_topic": {"t": 3}, "members": members}
explain_line(line).sentences()
"""

from __future__ import annotations

from assignors.assignment import PartitionId
from assignors.explain.explanation import Explanation, explain_line, verify
from assignors.explain.ledger import Facts, Ledger, WrongStepError
from assignors.explain.nearest import Candidate, candidates
from assignors.explain.rocketmq import spellings
from assignors.explain.steps import Step

__all__ = [
    "Candidate",
    "Explanation",
    "Facts",
    "Ledger",
    "PartitionId",
    "Step",
    "WrongStepError",
    "candidates",
    "explain_line",
    "spellings",
    "verify",
]
