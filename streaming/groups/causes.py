"""Causes of a rebalance, with evidence: the words, and their limits in a row.

A cause is a change between the previous decision and this one that makes a group decide again. It is listed only if log
and rounds prove that it happened. Where two causes leave the same bytes, the cause is the word that is true of both
(`member_gone`), and where nothing is left, it is `rejoined` or `unknown`. docs/causes.md has what can be known at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, get_args

from streaming.groups.rows import Cause
from streaming.terminal import counted

CauseWord = Literal[
    "migration",
    "member_joined",
    "member_left",
    "member_silent",
    "member_gone",
    "static_replacement",
    "subscription_changed",
    "partitions_changed",
    "strategy_changed",
    "settings_changed",
    "handover",
    "rejoined",
    "coordinator_moved",
    "broker_down",
    "broker_up",
    "name_server_differs",
    "member_lists_changed",
    "settled",
    "unknown",
]
"""All causes, in the order in which a row lists them."""

CAUSES: Final[tuple[CauseWord, ...]] = get_args(CauseWord)

MEMBERS_SHOWN: Final = 5
"""Members named by one cause; `count` has all of them. `joined` and `left` name the others: a group of 2,000 members
that all leave should not be written twice."""

TOPICS_SHOWN: Final = 8
"""Topics named by one kind of cause; one more entry without a topic counts the others."""

# Anyone may join with an id or a topic of 32 KB, and the row is kept in the state while its cost is open. Kafka's topic
# names have at most 249 characters; ids made by clients have the client id and a UUID.
_LONGEST = 249


class TopicChange(NamedTuple):
    """A topic that changed for a group.

    Attributes:
        topic: Name, or id as long as no round has named it.
        before: Value at the previous decision, as text; None without one.
        after: Value at this decision, as text; None without one.
    """

    topic: str
    before: str | None
    after: str | None


def cause(kind: CauseWord, evidence: str, *, before: str | None = None, after: str | None = None) -> Cause:
    """A cause that concerns neither single members nor a topic."""
    return Cause(kind, evidence, None, (), None, _short(before), _short(after))


def of_members(kind: CauseWord, members: Sequence[str], evidence: str) -> list[Cause]:
    """One cause for all these members; none if there are no members."""
    if members:
        shown = tuple([member[:_LONGEST] for member in members[:MEMBERS_SHOWN]])
        return [Cause(kind, evidence, len(members), shown, None, None, None)]
    return []


def of_topics(kind: CauseWord, changes: Iterable[TopicChange], evidence: str) -> list[Cause]:
    """One cause per topic, by name; beyond `TOPICS_SHOWN` one more that counts the other topics."""
    ordered = sorted(changes)
    found = [
        Cause(kind, evidence, None, (), _short(c.topic), _short(c.before), _short(c.after))
        for c in ordered[:TOPICS_SHOWN]
    ]
    more = len(ordered) - TOPICS_SHOWN
    if more > 0:
        found.append(Cause(kind, f"{counted(more, 'more topic')}: {evidence}", more, (), None, None, None))
    return found


def coordinator_moved(before: int, after: int) -> list[Cause]:
    """The cause `coordinator_moved`, if both leader epochs of the group's log partition are known and differ."""
    if not 0 <= before < after:
        return []
    evidence = (
        "the log partition of the group has a newer leader epoch: its coordinator was elected again, or (KRaft before "
        "3.6) a replica fell out of sync"
    )
    return [cause("coordinator_moved", evidence, before=str(before), after=str(after))]


def causes_in_order(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """Causes in the order of `CAUSES`; those of one kind stay as they are."""
    return tuple(sorted(causes, key=lambda found: CAUSES.index(found.cause)))


def _short(text: str | None) -> str | None:
    if text is None:
        return None
    return text[:_LONGEST]
