"""A RocketMQ cluster as the rounds see it: which requests a round sends, to whom, in which order.

    every name server   its brokers (106), its topics (206)
    every broker        groups with settings (201)
    every broker        the connections of each group (203)
    a broker per client what the client itself says (307)
    every broker        committed offsets of all groups (43)
    every name server   the route of each topic (105)
    every master        the ends of each topic's queues (202)

Committed offsets come before the ends, so that no lag is negative by that order. Nothing is asked per queue. An event
has what each server said; a server or client that does not answer is there with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from streaming.config import Filters
from streaming.lifecycle import room_log
from streaming.probe.deadline import Deadline, RoundAbandonedError
from streaming.probe.rocketmq import parts
from streaming.probe.rocketmq.members import MemberQuestions
from streaming.probe.rocketmq.observe import UNTOLD, RocketMQLook
from streaming.records import (
    BROADCASTING,
    MISSING,
    NONE,
    OK,
    TIMEOUT,
    BrokerSeen,
    MemberSeen,
    QueuesSeen,
    RocketMQObservation,
    RouteSeen,
    TopicSeen,
)
from streaming.rocketmq import Answer, Client, Question, Request, Unanswered, answers
from streaming.terminal import visible

_LOG = room_log(__name__)

MASTER: Final = 0

RETRY: Final = "%RETRY%"
DLQ: Final = "%DLQ%"

_SYSTEM_GROUPS = frozenset(
    {
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_PULL",
        "DEFAULT_CONSUMER",
        "FILTERSRV_CONSUMER",
        "SCHEDULE_CONSUMER",
        "SELF_TEST_C_GROUP",
        "TOOLS_CONSUMER",
        "__MONITOR_CONSUMER",
    }
)
_SYSTEM_PREFIX = "CID_RMQ_SYS_"
"""Groups that every broker has for itself (`MixAll` of 5.5.0)."""

_WARN_AGAIN_MS: Final = 3_600_000
"""A server that cannot be asked is named again after an hour."""

_QUIET_QUESTIONS = 1_000
"""Questions of a round about groups without members, of which nothing has changed for long: they take turns."""


@dataclass(slots=True)
class _Told:
    """What name servers and brokers said about everything, before each group is looked at."""

    addresses: dict[str, BrokerSeen] = field(default_factory=dict)
    topics: dict[str, set[str] | None] = field(default_factory=dict)
    configured: set[str] = field(default_factory=set)
    committed: dict[str, dict[str, dict[str, dict[int, int]]]] = field(default_factory=dict)
    whole: bool = True


class RocketMQCluster:
    """One cluster. In each round call `observe_groups` once."""

    def __init__(
        self,
        client: Client,
        name_servers: Sequence[str],
        filters: Filters,
        request_s: float = 3.0,
    ) -> None:
        """Watch through a client, which stays the caller's to close.

        Args:
            client: Asks.
            name_servers: Their addresses, all of them.
            filters: What is watched.
            request_s: How long a server may take to answer.
        """
        self._client = client
        self._name_servers = tuple(name_servers)
        self._filters = filters
        self._request_s = request_s
        self._members = MemberQuestions(self._ask)
        self._committing: set[str] = set()
        self._turn: dict[str, int] = {}
        self._time = -1
        self._warned: dict[str, int] = {}

    def observe_groups(
        self, known: Iterable[str], quiet: frozenset[str], time: int, deadline: Deadline
    ) -> RocketMQLook:
        """Observe all watched groups, and those that are known.

        Args:
            known: Groups of the last round.
            quiet: Those of them without members, of which nothing has changed for long.
            time: The round's time, ms.
            deadline: The round's deadline.

        Raises:
            RoundAbandonedError: No name server answered, or the time is over.
            StopRequestedError: The probe is to stop.
        """
        self._client.forgive()
        self._time = time
        self._warned = {address: at for address, at in self._warned.items() if 0 <= time - at < _WARN_AGAIN_MS}
        told = self._servers(deadline)
        self._settings(told, deadline)
        named = set(told.configured)
        for topics in told.topics.values():
            named |= {topic.removeprefix(RETRY) for topic in topics or () if topic.startswith(RETRY)}
        groups = {group for group in named | self._committing if self._watches(group)} | set(known)
        asked = groups - self._waiting(groups & quiet, len(told.addresses), time)
        seen: dict[str, list[BrokerSeen]] = {}
        cuts: dict[str, set[str]] = {group: set() for group in groups}
        self._connections(told, sorted(asked), seen, cuts, deadline)
        members = self._members.ask(seen, cuts, time, deadline)
        self._committed(told, deadline)
        topics_of = {
            group: self._topics_of(group, told, brokers, members.get(group, ())) for group, brokers in seen.items()
        }
        routes = self._routes({topic for of_group in topics_of.values() for topic in of_group}, told, deadline)
        ends = self._ends(routes, told, deadline)
        found = {
            group: self._observation(
                group, brokers, members.get(group, ()), topics_of[group], routes, ends, told, cuts[group]
            )
            for group, brokers in seen.items()
        }
        there = members.keys() | self._committing | told.configured
        names = frozenset(broker.name for broker in told.addresses.values())
        return RocketMQLook(found, frozenset(there), frozenset(groups - found.keys()), names, told.whole)

    # -- servers

    def _servers(self, deadline: Deadline) -> _Told:
        told = _Told()
        reasons = []
        questions = [
            Question(address, code)
            for address in self._name_servers
            for code in (Request.GET_BROKER_CLUSTER_INFO, Request.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        ]
        found = self._ask(questions, deadline)
        for address, cluster, listed in zip(self._name_servers, found[::2], found[1::2], strict=True):
            how, reason, info = parts.outcome(cluster, answers.ClusterInfo)
            if info is None:
                reasons.append(f"{address}: {reason or how}")
                told.whole = False
            else:
                self._add_brokers(told, info)
            _, _, topics = parts.outcome(listed, answers.TopicList)
            told.topics[address] = None if topics is None else set(topics.topicList)
        if len(reasons) == len(self._name_servers):
            message = f"no name server answered ({'; '.join(reasons)})"
            raise RoundAbandonedError(message)
        return told

    def _add_brokers(self, told: _Told, info: answers.ClusterInfo) -> None:
        for name, data in info.brokerAddrTable.items():
            for number, address in data.brokerAddrs.items():
                place = BrokerSeen(name, int(number), address, OK)
                told.addresses.setdefault(address, place)

    def _settings(self, told: _Told, deadline: Deadline) -> None:
        """Groups that have settings on a broker."""
        code = Request.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
        for answer in self._ask([Question(address, code) for address in sorted(told.addresses)], deadline):
            _, _, settings = parts.outcome(answer, answers.SubscriptionGroups)
            if settings is None:
                told.whole = False
            else:
                told.configured |= settings.subscriptionGroupTable.keys()

    def _watches(self, group: str) -> bool:
        is_system = group in _SYSTEM_GROUPS or group.startswith(_SYSTEM_PREFIX)
        return 0 < len(group) <= 512 and not is_system and self._filters.watches_group(group)

    def _waiting(self, quiet: set[str], brokers: int, time: int) -> set[str]:
        """Quiet groups whose turn it is not: those that were asked last."""
        most = max(1, _QUIET_QUESTIONS // max(1, brokers))
        order = sorted(quiet, key=lambda group: (self._turn.get(group, -1), group))
        for group in order[:most]:
            self._turn[group] = time
        self._turn = {group: at for group, at in self._turn.items() if group in quiet}
        return set(order[most:])

    # -- groups

    def _connections(
        self,
        told: _Told,
        groups: Sequence[str],
        seen: dict[str, list[BrokerSeen]],
        cuts: Mapping[str, set[str]],
        deadline: Deadline,
    ) -> None:
        """Members of the groups as each broker tells them."""
        places = sorted(told.addresses.values(), key=lambda place: (place.name, place.broker_id, place.address))
        pairs = [(group, place) for group in groups for place in places]
        code = Request.GET_CONSUMER_CONNECTION_LIST
        found = self._ask([Question(place.address, code, {"consumerGroup": group}) for group, place in pairs], deadline)
        for (group, place), answer in zip(pairs, found, strict=True):
            one = parts.broker_seen(place, answer, cuts[group])
            told.whole &= one.answer in (OK, NONE)
            seen.setdefault(group, []).append(one)

    def _committed(self, told: _Told, deadline: Deadline) -> None:
        masters = self._masters(told)
        questions = [Question(address, Request.GET_ALL_CONSUMER_OFFSET) for address in masters.values()]
        for name, answer in zip(masters, self._ask(questions, deadline), strict=True):
            _, _, offsets = parts.outcome(answer, answers.ConsumerOffsets)
            if offsets is None:
                told.whole = False
            else:
                told.committed[name] = parts.offsets_by_group(offsets)
        self._committing = {group for committed in told.committed.values() for group in committed}

    # -- topics

    def _topics_of(
        self, group: str, told: _Told, brokers: Sequence[BrokerSeen], members: Sequence[MemberSeen]
    ) -> list[str]:
        """Topics of a group, by name: subscribed, committed, and its own two where they exist."""
        found = {one.topic for broker in brokers for one in broker.subscriptions or ()}
        found |= {one.topic for member in members for one in member.subscriptions or ()}
        for committed in told.committed.values():
            found |= committed.get(group, {}).keys()
        for topics in told.topics.values():
            found |= {topic for topic in (RETRY + group, DLQ + group) if topics is not None and topic in topics}
        return sorted(topic for topic in found if 0 < len(topic) <= 512 and self._filters.watches_topic(topic))

    def _routes(self, topics: set[str], told: _Told, deadline: Deadline) -> dict[str, tuple[RouteSeen, ...]]:
        """The route of each topic as each name server tells it."""
        pairs = [
            (topic, address)
            for topic in sorted(topics)
            for address in self._name_servers
            if (listed := told.topics[address]) is None or topic in listed
        ]
        fields = {topic: {"topic": topic, "acceptStandardJsonOnly": "true"} for topic in topics}
        questions = [Question(address, Request.GET_ROUTEINFO_BY_TOPIC, fields[topic]) for topic, address in pairs]
        found = {
            (topic, address): parts.route_seen(address, answer)
            for (topic, address), answer in zip(pairs, self._ask(questions, deadline), strict=True)
        }
        return {
            # A name server that lists its topics without this one has no route of it.
            topic: tuple([found.get((topic, address)) or RouteSeen(address, MISSING) for address in self._name_servers])
            for topic in topics
        }

    def _ends(
        self, routes: Mapping[str, tuple[RouteSeen, ...]], told: _Told, deadline: Deadline
    ) -> dict[tuple[str, str], Answer]:
        """Answers to GET_TOPIC_STATS_INFO by topic and broker name."""
        masters = self._masters(told)
        pairs = [
            (topic, name)
            for topic, of_topic in sorted(routes.items())
            for name in sorted({broker.name for route in of_topic for broker in route.brokers})
            if name in masters
        ]
        questions = [Question(masters[name], Request.GET_TOPIC_STATS_INFO, {"topic": topic}) for topic, name in pairs]
        return dict(zip(pairs, self._ask(questions, deadline), strict=True))

    def _observation(
        self,
        group: str,
        brokers: Sequence[BrokerSeen],
        members: tuple[MemberSeen, ...],
        topics: Sequence[str],
        routes: Mapping[str, tuple[RouteSeen, ...]],
        ends: Mapping[tuple[str, str], Answer],
        told: _Told,
        cut: set[str],
    ) -> RocketMQObservation:
        models = {broker.message_model for broker in brokers} | {member.message_model for member in members}
        # Such a group's members keep their offsets themselves.
        keeps_own = BROADCASTING in models
        seen = []
        for topic in topics:
            of_topic = []
            for name in sorted({broker.name for route in routes[topic] for broker in route.brokers}):
                answer = ends.get((topic, name))
                if answer is None:
                    of_topic.append(QueuesSeen(name, TIMEOUT))  # no name server knows its master
                    continue
                committed = told.committed.get(name)
                of_group = None if committed is None or keeps_own else committed.get(group, {}).get(topic, {})
                of_topic.append(parts.queues_seen(name, answer, of_group, cut))
            seen.append(TopicSeen(topic, routes[topic], tuple(of_topic)))
        return RocketMQObservation(*UNTOLD, tuple(brokers), members, tuple(seen), cut=tuple(sorted(cut)))

    def _masters(self, told: _Told) -> dict[str, str]:
        """Address of each broker's master, by name."""
        found: dict[str, str] = {}
        for address, place in sorted(told.addresses.items()):
            if place.broker_id == MASTER:
                found.setdefault(place.name, address)
        return dict(sorted(found.items()))

    def _ask(self, questions: Sequence[Question], deadline: Deadline) -> list[Answer]:
        if not questions:
            return []
        deadline.begin()
        found = self._client.ask(questions, min(self._request_s, deadline.remaining()))
        deadline.remaining()
        for question, answer in zip(questions, found, strict=True):
            if isinstance(answer, Unanswered) and not answer.late and question.address not in self._warned:
                self._warned[question.address] = self._time
                _LOG.warning("%s cannot be asked: %s.", visible(question.address), answer.reason)
        return found
