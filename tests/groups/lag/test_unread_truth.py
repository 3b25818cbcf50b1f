"""The bounds of the oldest unread record against a world in which each record's time of arrival is known."""

from __future__ import annotations

from tests.examples import examples
from tests.groups.lag.unread_world import INTERVAL, lived

ROUNDS = 1_500


def test_the_truth_is_between_the_bounds_of_the_current_row_at_each_round() -> None:
    evaluations = bounded = wide = 0
    for seed in range(examples(200)):
        for found in lived(seed, ROUNDS):
            earliest, latest = found.row.oldest_unread_time_min, found.row.oldest_unread_time_max
            assert earliest is None or earliest <= found.truth, (seed, found)
            assert latest is None or found.truth <= latest, (seed, found)
            evaluations += 1
            if earliest is not None and latest is not None:
                bounded += 1
                wide += latest - earliest > max(2 * INTERVAL, (found.now - found.truth) / 10)
    assert bounded > evaluations / 2
    assert wide < 0.05 * bounded
