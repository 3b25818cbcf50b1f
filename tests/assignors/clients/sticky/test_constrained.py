"""Parts of the deal to equal subscriptions, by hand."""

from __future__ import annotations

import numpy as np

from assignors.clients.sticky.constrained import _collect


def test_partitions_of_more_than_65536_members_go_to_their_takers() -> None:
    last = 1 << 16
    kept = [np.empty(0, dtype=np.int64)] * (last + 1)
    kept[0] = np.array([7])
    lists = _collect(kept, np.array([3, 4, 5]), np.array([last, 0, last]))
    told = {member: ids.tolist() for member, ids in enumerate(lists) if ids.size}
    assert told == {0: [7, 4], last: [3, 5]}
