"""Recomputes a leader's decision with all candidates for its library, and compares the results with its assignment.

A candidate that gives the assignment explains it. That none does proves nothing by itself, because nobody can list all
the clients in the world: it is drift only where the operator has declared the clients, or where the strategy is a
deterministic plug-in of the user's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Final

import msgspec

from assignors import (
    CUSTOM,
    Assignment,
    AssignorError,
    CannotTell,
    Group,
    Leaders,
    LeaderWouldFail,
    Library,
    PartitionRacks,
    Strategy,
    Subscription,
    TooMuchWork,
    assign,
    claimed_partitions,
    declared_leaders,
    possible_leaders,
    same,
    spend,
    topics_without_metadata,
    with_hidden_inputs,
)
from streaming.groups.classic.leader_metadata import (
    SeenCounts,
    SeenRacks,
    WatchedRacks,
    is_far_beyond,
    possible_counts,
    racks_of,
)
from streaming.groups.classic.membership import subscription_of
from streaming.groups.context import of_decision
from streaming.groups.state import RacksSeen
from streaming.groups.verdict_inputs import ClientInputs
from streaming.groups.verdicts import (
    DECLARED,
    DRIFTED,
    IDENTICAL,
    UNEXPLAINED,
    UNVERIFIED,
    Nearest,
    Verdict,
    drifted_between,
)
from streaming.records import Member, MembershipRecord

# Most combinations of partition counts to try: four topics with two possible counts each, already a rare coincidence.
# Every combination costs one recomputation per candidate.
_MOST_VARIANTS = 16

_UNSEEN_RACKS = "it fits no racks that rounds have seen; a leader sees other racks while a broker is down"
_UNTRIED_RACKS = "it fits none of the racks that were tried, and the racks have changed too often to try all"


def recompute(
    record: MembershipRecord,
    strategy: Strategy,
    actual: Assignment,
    counts: dict[str, SeenCounts],
    racks: SeenRacks,
    clients: Sequence[Library] = (),
    *,
    settled: bool,
) -> Verdict:
    """Recompute a decision with every candidate that the record and the rounds allow.

    Args:
        record: The decision's record.
        strategy: The group's strategy.
        actual: The record's assignment.
        counts: Partition counts of all subscribed and assigned topics.
        racks: Racks of their replicas.
        clients: The libraries that the members run, as the operator declares; () where nothing is declared.
        settled: No later round can show a count that the leader may have known.

    Returns:
        `identical`, `drifted` (by declaration) or `unverified`. It is also `unverified` if the work exceeds the limit
        for one decision; its candidates are then those computed within the limit.
    """
    with of_decision():
        verdict = _Search(record, strategy, actual, counts, racks, clients, settled=settled).verdict()
        if not record.seen or verdict.verdict == IDENTICAL or not _order_may_matter(strategy, record.members, clients):
            return verdict
        for other in _other_orders(record):
            found = _Search(other, strategy, actual, counts, racks, clients, settled=settled).verdict()
            if found.verdict == IDENTICAL:
                return found
        if verdict.verdict != DRIFTED and verdict.reason != UNEXPLAINED:
            return verdict
        return replace(verdict, verdict=UNVERIFIED, reason=_UNKNOWN_ORDER, basis=None, drifted=())


_UNKNOWN_ORDER: Final = (
    "no candidate fits in the orders of members that were tried; the order in which the leader had them is not known"
)

# Libraries that sort their members, and the strategies by which they do.
_SORTING: Final = frozenset({"java", "librdkafka", "sarama", "franz-go"})
_SORT_MEMBERS: Final = frozenset({"range", "roundrobin"})


def _order_may_matter(strategy: Strategy, members: Sequence[Member], clients: Sequence[Library]) -> bool:
    all_sort = bool(clients) and all(client.name in _SORTING for client in clients)
    return len(members) > 1 and not (all_sort and strategy.name in _SORT_MEMBERS)


def _other_orders(record: MembershipRecord) -> Iterator[MembershipRecord]:
    """The record with its members in other orders.

    A coordinator answers in the order of the map from which it also writes the record into the log, so the record's own
    order is usually the right one, and few others are tried.
    """
    by_id = sorted(record.members, key=lambda member: member.member_id)
    static_first = sorted(by_id, key=lambda member: member.group_instance_id is None)
    orders = dict.fromkeys(map(tuple, (by_id, by_id[::-1], static_first, static_first[::-1])))
    for order in orders:
        if order != record.members:
            yield msgspec.structs.replace(record, members=order)


class _Search:
    """Tries the candidates of one decision, one after the other, until one gives its assignment."""

    def __init__(
        self,
        record: MembershipRecord,
        strategy: Strategy,
        actual: Assignment,
        counts: dict[str, SeenCounts],
        racks: SeenRacks,
        clients: Sequence[Library],
        *,
        settled: bool,
    ) -> None:
        self._record, self._strategy, self._actual = record, strategy, actual
        self._counts, self._racks, self._settled = counts, racks, settled
        self._leaders = _leaders(record, strategy, clients)
        self._declared = bool(clients) or strategy.custom
        self._leader = None if record.seen else record.leader
        self._members = tuple(map(subscription_of, record.members))
        self._familiar = _familiar_topics(record, self._members)
        self._candidates = 0
        self._tried: set[Library] = set()
        # Why not all likely candidates could be tried; None while all could.
        self._cannot = _far_beyond_seen(counts)
        # The candidate that comes nearest, of those that could be computed, and its inputs, or those of the first.
        self._nearest: Nearest | None = None
        self._inputs: ClientInputs | None = None
        # Whether some candidate may fit with racks that no round has seen.
        self._may_fit = False

    def verdict(self) -> Verdict:
        """Try all candidates."""
        variants = self._variants()
        if not variants:
            return Verdict(UNVERIFIED, self._cannot)
        libraries = (*self._leaders.likely, *self._leaders.others)
        self._candidates = len(libraries) * len(variants) * len(self._racks.views)
        for library, known, view in product(libraries, variants, self._racks.views):
            found = self._try(library, known, view)
            if found is not None:
                return found
        return self._verdict_without_fit()

    def _variants(self) -> list[dict[str, int]]:
        """Partition counts to try."""
        leader = {topic: c.leader for topic, c in self._counts.items()}
        seen = {topic: c.seen for topic, c in self._counts.items()}
        possible = possible_counts(self._strategy, self._members, leader, seen)
        variants = list(islice(possible, _MOST_VARIANTS + 1))
        if len(variants) > _MOST_VARIANTS:
            variants.pop()
            self._could_not(
                "too many partition counts are possible, because partitions are held back or were owned before"
            )
        together = sum(map(max, seen.values()))
        largest = max((sum(known.values()) for known in variants), default=0)
        if is_far_beyond(largest, together):
            variants = [known for known in variants if not is_far_beyond(sum(known.values()), together)]
            self._could_not(
                f"it assigns partitions as if its topics had {largest} together, and rounds have seen {together}: "
                "too many to recompute"
            )
        return variants

    def _could_not(self, reason: str, library: Library | None = None) -> None:
        """Keep the first reason why not all candidates were tried; one of a library that is not likely counts not."""
        if library is None or library in self._leaders.likely:
            self._cannot = self._cannot or reason

    def _try(self, library: Library, known: Mapping[str, int], view: Mapping[str, RacksSeen]) -> Verdict | None:
        """Try one candidate; None where it gives something else, or cannot be computed."""
        try:
            # Charged before anything of that size is built. If it is too much, smaller candidates are still tried.
            spend(len(self._members) + sum(known.values()) // (4 if view else 16))
            asked = self._asked(library, known, view)
            self._inputs = self._inputs or asked
            result, fit = _computed(self._strategy, asked, self._actual)
        except LeaderWouldFail:
            return None
        except AssignorError as error:
            self._could_not(_reason(error, len(self._members), known, self._candidates), library)
            return None
        self._tried.add(library)
        unseen = self._unseen(library, known)
        if fit is not None and unseen:
            doubt = self._doubt(known, unseen)
            if doubt is not None:
                return Verdict(UNVERIFIED, doubt, candidates=len(self._tried), inputs=fit)
        if unseen:
            # kafka-python can leave a topic's last partitions unassigned, so the count read from the assignment may be
            # too low.
            known = {**known, **{topic: self._counts[topic].newest for topic in unseen}}
            try:
                asked = self._asked(library, known, view)
                result, fit = _computed(self._strategy, asked, self._actual)
            except AssignorError as error:
                reason = _reason(error, len(self._members), known, self._candidates)
                self._could_not(f"with the newest partition counts: {reason}", library)
                return None
        if fit is not None:
            return Verdict(
                IDENTICAL,
                library=str(library),
                candidates=len(self._tried),
                counts=known,
                racks=fit.partition_racks,
                inputs=fit,
            )
        differing = drifted_between(result, self._actual)
        if self._nearest is None or len(differing) < len(self._nearest.differing):
            self._nearest, self._inputs = Nearest(str(library), differing), asked
        self._may_fit = self._may_fit or _may_fit_in_other_racks(
            self._strategy, self._members, result, self._actual, asked.partition_racks, self._racks
        )
        return None

    def _asked(self, library: Library, known: Mapping[str, int], view: Mapping[str, RacksSeen]) -> ClientInputs:
        shown = _shown(self._strategy, view, known)
        return ClientInputs(self._strategy.name, Group(self._members, known, leader=self._leader), library, shown)

    def _unseen(self, library: Library, known: Mapping[str, int]) -> list[str]:
        """Topics for which no round has seen the count being tried."""
        # A leader that did not wait for a topic's metadata assigns none of it: a count of 0 needs no round.
        unknown = topics_without_metadata(library, self._counts)
        return sorted(
            topic
            for topic, c in self._counts.items()
            if known[topic] not in c.seen and not (known[topic] == 0 and topic in unknown)
        )

    def _doubt(self, known: Mapping[str, int], unseen: Sequence[str]) -> str | None:
        """Why a fitting candidate proves nothing, as rounds have not seen its counts; None if they are impossible."""
        lacked = [topic for topic in unseen if known[topic] == 0 and topic not in self._familiar]
        if lacked:
            return f"it fits a leader that did not have the metadata of topic {lacked[0][:100]!r} yet"
        counts = self._counts
        for topic in unseen:
            if not counts[topic].impossible or (counts[topic].ahead and not self._settled):
                others = ", ".join(map(str, sorted(counts[topic].seen)))
                return (
                    f"it fits a partition count of topic {topic[:100]!r} that no round has seen "
                    f"({known[topic]}; seen: {others})"
                )
        return None

    def _verdict_without_fit(self) -> Verdict:
        """The verdict when no candidate gives the assignment."""
        nearest, tried = self._nearest, len(self._tried)
        if nearest is not None and not self._strategy.deterministic:
            self._could_not("the strategy is not deterministic: a different result now proves nothing")
        if self._may_fit:
            self._could_not(_UNTRIED_RACKS if self._racks.left_out else _UNSEEN_RACKS)
        if nearest is None:
            self._could_not("no known library could have led this group")
        elif not self._declared:
            self._could_not(UNEXPLAINED)
        if self._cannot is not None or nearest is None:
            return Verdict(UNVERIFIED, self._cannot, candidates=tried, inputs=self._inputs, nearest=nearest)
        by = "the strategy" if self._strategy.custom else "none of the declared clients"
        return Verdict(
            DRIFTED,
            f"{by} gives {'another' if self._strategy.custom else 'this'} assignment",
            basis=DECLARED,
            candidates=tried,
            drifted=nearest.differing,
            inputs=self._inputs,
            nearest=nearest,
        )


def _far_beyond_seen(counts: Mapping[str, SeenCounts]) -> str | None:
    """Why a topic's count in the assignment is not tried; None if all are tried."""
    reasons = (
        f"it assigns partition {known.leader - 1} of topic {topic[:100]!r}, of which rounds have seen "
        f"{max(known.seen)} partitions: too many to recompute"
        for topic, known in counts.items()
        if is_far_beyond(known.leader, max(known.seen))
    )
    return next(reasons, None)


def _familiar_topics(record: MembershipRecord, members: Sequence[Subscription]) -> frozenset[str]:
    """Topics that the leader subscribes to and of which some member reports previous partitions.

    Java leaders may briefly lack the metadata of any other topic as well (`assignors/clients/possible_leaders.py`). If
    such a topic stays without an owner, the finding `unassigned` reports it, with no guess at what the leader knew.
    """
    of_leader = next((m.topics or () for m in record.members if m.member_id == record.leader), ())
    had = {topic for member in members for topic, _ in claimed_partitions(member)}
    return frozenset(of_leader) & had


def _shown(strategy: Strategy, view: Mapping[str, RacksSeen], counts: Mapping[str, int]) -> PartitionRacks | None:
    """The racks to pass to a strategy; `WatchedRacks` for a user's own, since it is unknown whether it uses them."""
    if not view:
        return None
    found = racks_of(view, counts)
    if strategy.custom:
        return WatchedRacks(found)
    return found


def _may_fit_in_other_racks(
    strategy: Strategy,
    members: Sequence[Subscription],
    result: Assignment,
    actual: Assignment,
    shown: PartitionRacks | None,
    racks: SeenRacks,
) -> bool:
    """Whether a candidate that does not fit may fit with racks that no round has seen."""
    if strategy.custom:
        return racks.any() and (not isinstance(shown, WatchedRacks) or shown.at)
    if not racks.may_be_others(strategy, members):
        return False
    # The sizes of the shares that `range` makes of a topic do not depend on racks; only who gets which partitions does.
    return strategy.name != "range" or _sizes(result) == _sizes(actual)


def _sizes(assignment: Assignment) -> dict[str, list[int]]:
    sizes: dict[str, list[int]] = {}
    for topics in assignment.values():
        for topic, partitions in topics.items():
            if partitions:
                sizes.setdefault(topic, []).append(len(partitions))
    return {topic: sorted(of_topic) for topic, of_topic in sizes.items()}


def _computed(strategy: Strategy, asked: ClientInputs, actual: Assignment) -> tuple[Assignment, ClientInputs | None]:
    """A candidate's result, and the inputs with which it equals the assignment; None if it does not.

    Raises:
        CannotTell: The result cannot be computed, or it differs only because of something that no record holds.
    """
    group, library, racks = asked.group, asked.library, asked.partition_racks
    try:
        result = assign(strategy, group, library, racks)
    except CannotTell as error:
        if error.admits(actual):
            return actual, asked
        raise
    if same(result, actual):
        return result, asked
    for other, reason in with_hidden_inputs(strategy.name, group, library):
        try:
            fits = same(assign(strategy, other, library, racks), actual)
        except LeaderWouldFail:
            continue
        if fits and reason is not None:
            raise CannotTell(reason)
        if fits:
            return result, replace(asked, group=other)
    return result, None


def _reason(error: AssignorError, members: int, counts: Mapping[str, int], candidates: int) -> str:
    if isinstance(error, TooMuchWork):
        return (
            f"too large to recompute: with {members:,} members, {sum(counts.values()):,} partitions and "
            f"{candidates:,} candidates {error.reason}"
        )
    if isinstance(error, CannotTell):
        return error.reason
    return str(error)[:200]


def _leaders(record: MembershipRecord, strategy: Strategy, clients: Sequence[Library]) -> Leaders:
    """The libraries to try."""
    if strategy.custom:
        return Leaders((Library(CUSTOM),), ())
    if clients:
        return Leaders(declared_leaders(strategy.name, clients), ())
    # Where nobody knows who led, any member may have. (The leader may have left between join and sync, too.)
    members = [m for m in record.members if record.seen or m.member_id == record.leader]
    found = [
        possible_leaders(
            strategy.name,
            version=member.subscription_version,
            user_data=member.user_data,
            client_id=member.client_id,
            member_id=member.member_id,
        )
        for member in members
    ] or [possible_leaders(strategy.name)]
    likely = dict.fromkeys(library for leaders in found for library in leaders.likely)
    others = dict.fromkeys(library for leaders in found for library in leaders.others if library not in likely)
    return Leaders(tuple(likely), tuple(others))
