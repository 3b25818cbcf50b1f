"""What the shipped alert rules must have said of the demo, and that they said nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from streaming.demo.evidence import Evidence

__all__ = ["check_alerts"]

_TOLD = {
    ("drift", "clicks-pile-up"): ["firing", "resolved"],
    ("imbalance", "clicks-pile-up"): ["firing", "resolved"],
    ("lag", "billing-stuck"): ["firing", "resolved"],
    ("lag", "orders-retired"): ["firing", "gone"],
    ("hanging_transaction", None): ["firing", "resolved"],
    ("silence", None): ["firing", "resolved"],
    # Events: an alert lasts an hour after the last of them.
    ("undecodable", None): ["firing"],
    ("unknown_records", None): ["firing"],
}
"""Rule and group: what people were told, in order. A drift of many generations is one."""

_REPEATING = frozenset({("lag", "billing-stuck")})
"""The member gets stuck every three minutes: a long demo tells it again, and may end while it is stuck."""


_POSSIBLE = frozenset({("gap", None)})
"""The silence that the demo makes itself is a gap, which is known a round after it: the demo may have ended by then."""


def check_alerts(evidence: Evidence) -> Iterator[str]:
    """The alerts of all stories; a sentence per thing that is missing or too much."""
    told: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for row in evidence.rows(
        "SELECT rule, group_id, state FROM alerts WHERE state = 'firing' OR (closed AND from_state = 'firing') "
        "ORDER BY decision, round"
    ):
        told[row["rule"], row["group_id"]].append(row["state"])
    for (rule, group), states in _TOLD.items():
        found = told.pop((rule, group), [])
        if (rule, group) in _REPEATING:
            found = found[: len(states)]
        if found != states:
            yield f"the alert {rule} of {group or 'the cluster'} should have been {states}, it was {found}"
    for (rule, group), states in told.items():
        if (rule, group) in _POSSIBLE:
            continue
        yield f"nothing should have told {rule} of {group!r}, it was {states}"
    sql = (
        "SELECT rule, group_id, state FROM alerts WHERE rule NOT IN ('silence', 'gap') AND state <> 'pending' "
        "AND decision >= (SELECT min(decision) FROM alerts WHERE rule = 'silence' AND state = 'firing') "
        "AND decision <= (SELECT max(decision) FROM alerts WHERE rule = 'silence' AND state = 'resolved')"
    )
    if others := evidence.rows(sql):
        yield f"while there was silence other alerts changed: {others}"
