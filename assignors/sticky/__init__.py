"""The strategies `sticky` and `cooperative-sticky`: members keep what they had, as far as balance allows."""

from __future__ import annotations

from assignors.library import JAVA, Library
from assignors.model import Subscription, TopicPartitions
from assignors.sticky.java import COOPERATIVE_ERAS, STICKY_ERAS
from assignors.sticky.user_data import read_sticky
from assignors.strategy import Strategy

__all__ = ["COOPERATIVE_STICKY", "STICKY", "claimed_partitions", "remembers_generations"]

# From here on `AbstractStickyAssignor.maxGeneration` outlives the decision.
_REMEMBERS = (3, 0)

STICKY = Strategy(
    name="sticky",
    eras=STICKY_ERAS,
    otherwise="this library's sticky is not recomputed",
)
COOPERATIVE_STICKY = Strategy(
    name="cooperative-sticky",
    eras=COOPERATIVE_ERAS,
    otherwise="this library's cooperative-sticky is not recomputed",
)


def claimed_partitions(member: Subscription) -> TopicPartitions:
    """Partitions that a member of a sticky group says it had, in its subscription or in its user data."""
    return (*member.owned, *read_sticky(member.user_data)[0].partitions)


def remembers_generations(strategy: str, library: Library) -> bool:
    """Whether a leader of this library remembers the highest generation of its earlier decisions.

    Then a decision may depend on what no record holds (`Group.remembered_generation`), if members report only lower
    ones: after the group was deleted, for instance, and made anew while the leader lived on.
    """
    if strategy not in (STICKY.name, COOPERATIVE_STICKY.name) or library.name != JAVA:
        return False
    return library.release is None or library.release >= _REMEMBERS
