"""The alerts that the shipped rules must raise in the demo; any other alert is an error."""

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
    ("offsets_blocked", None): ["firing", "resolved"],
    ("silence", None): ["firing", "resolved"],
    # Rules on events: the alert lasts for an hour after the last event.
    ("undecodable", None): ["firing"],
    ("unknown_records", None): ["firing"],
}
"""Rule and group: the notified states, in order. Drift over several generations is one alert."""

_REPEATING = frozenset({("lag", "billing-stuck")})
"""The member gets stuck every three minutes: a long demo raises the alert again, and may end while it fires."""


_POSSIBLE = frozenset({("gap", None)})
"""The demo stops the probe once, which is a gap. It becomes known one round later, when the demo may have ended."""


def check_alerts(evidence: Evidence) -> Iterator[str]:
    """Check the alerts of all stories; one sentence for everything that is missing or too much."""
    told: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for row in evidence.rows(
        "SELECT rule, group_id, state FROM alerts WHERE state = 'firing' OR (ended AND from_state = 'firing') "
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
