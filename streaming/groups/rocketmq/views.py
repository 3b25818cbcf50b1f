"""What one round says of a group, arranged for judgement: views of clients, and what each client holds.

A client decides by two views: the list of the group's clients on one broker of the topic, chosen at random each time
(`MQClientInstance.findConsumerIdList`), and the topic's route on the name server that it is connected to
(`RebalanceImpl.rebalanceByTopic`). So the views that a client can have had are the lists of all brokers of the topic
and the routes of all name servers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from typing import Final, TypeVar

from streaming.groups.context import Allocation
from streaming.groups.rocketmq.allocation import Queue, Runs, runs
from streaming.groups.rocketmq.state import DecisionInputs, Routes
from streaming.groups.rows import split, unit_of
from streaming.records import (
    BROADCASTING,
    MISSING,
    NONE,
    OK,
    POP,
    PULL,
    BrokerSeen,
    Member,
    MemberSeen,
    RocketMQObservation,
    RouteSeen,
    TopicSeen,
)

_RETRY: Final = "%RETRY%"
_DEAD: Final = "%DLQ%"

_READ = 4
"""`PermName.PERM_READ`."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

NO_MEMBERS: Final = "the group has no members"


@dataclass(frozen=True)
class Views:
    """One round of one group.

    Who is in which of its sets:

    - `masters` and `lists` have the same brokers: those of which any replica answered.
    - `clients` are the clients on `lists`, and those of `unseen`, which are on none of them.
    - `told` are those of `clients` that answered. The observation may tell of more: of a client that is on a slave's
      list alone, as for half a minute after its master's restart.
    - `held` and `subscriptions` know of all `clients`, `runs` of all that `told`.

    Attributes:
        observation: The round.
        allocation: Parameters of its strategies.
        assumed: Members of the newest decision, by id: what a member held that does not answer now.
        listed: Clients on each broker's list at that decision, by broker name: who could know of a member. Without
            brokers that are gone.
    """

    observation: RocketMQObservation
    allocation: Allocation
    assumed: Mapping[str, Member] = field(default_factory=dict)
    listed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def told(self) -> dict[str, MemberSeen]:
        """Those of `clients` that answered, by id."""
        clients = frozenset(self.clients)
        return {
            member.client_id: member
            for member in self.observation.members
            if member.answer == OK and member.client_id in clients
        }

    @cached_property
    def masters(self) -> dict[str, BrokerSeen]:
        """The broker of each name whose list clients ask for: the master, or another replica where none answers."""
        answering = [broker for broker in reversed(self.observation.brokers) if broker.answer in {OK, NONE}]
        return {broker.name: broker for broker in sorted(answering, key=lambda broker: -broker.broker_id)}

    @cached_property
    def lists(self) -> dict[str, tuple[str, ...]]:
        """Clients on the list of each broker that answered, by broker name, sorted, duplicates kept."""
        return {name: tuple(sorted(broker.clients)) for name, broker in sorted(self.masters.items())}

    @cached_property
    def clients(self) -> tuple[str, ...]:
        """Ids of all clients that are on any list, and of those that nobody can tell of."""
        return tuple(sorted({*self._on_lists, *self.unseen}))

    @cached_property
    def unseen(self) -> tuple[str, ...]:
        """Members of the newest decision that nobody can tell of: no broker that listed them then answers now.

        It would be a guess that they are gone. One that another broker lists is seen; one that a broker took off its
        list is gone.
        """
        told_of = self._on_lists.union(*(clients for name, clients in self.listed.items() if name in self.lists))
        listed = frozenset(chain.from_iterable(self.listed.values()))
        return tuple(sorted((self.assumed.keys() & listed) - told_of))

    @cached_property
    def not_answering(self) -> dict[str, str]:
        """What brokers said that should tell the group's members and do not, by name, sorted.

        Those of the routes of its topics, and those that alone could tell of members; "missing" where no name server
        knows the broker any more.
        """
        unseen = frozenset(self.unseen)
        should = set(chain.from_iterable(self.brokers_of.values()))
        should |= {name for name, clients in self.listed.items() if not unseen.isdisjoint(clients)}
        answers = {broker.name: broker.reason or broker.answer for broker in reversed(self.observation.brokers)}
        return {name: answers.get(name, MISSING) for name in sorted(should - self.lists.keys())}

    @cached_property
    def _on_lists(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(self.lists.values()))

    @cached_property
    def topics(self) -> dict[str, TopicSeen]:
        """The topics that have owners, by name."""
        return {seen.topic: seen for seen in self.observation.topics if not is_dead_letters(seen.topic)}

    @cached_property
    def subscriptions(self) -> dict[str, frozenset[str] | None]:
        """Topics of each client, by its own word, or those at the newest decision; None if unknown."""
        found: dict[str, frozenset[str] | None] = {}
        for client in self.clients:
            member, before = self.told.get(client), self.assumed.get(client)
            if member is not None and member.subscriptions is not None:
                found[client] = frozenset(subscription.topic for subscription in member.subscriptions)
            elif before is None or before.topics is None:
                found[client] = None
            else:
                found[client] = frozenset(split(unit)[0] for unit in before.topics)
        return found

    @cached_property
    def subscribers(self) -> dict[str, frozenset[str]]:
        """Clients that subscribe to each topic that has any, as far as it is known."""
        pairs = ((topic, client) for client, topics in self.subscriptions.items() for topic in topics or ())
        return {topic: frozenset(clients) for topic, clients in grouped(pairs).items()}

    @cached_property
    def queues_by_server(self) -> dict[str, dict[str, tuple[Queue, ...]]]:
        """A topic's readable queues by each name server that knows it: topic, name server, queues sorted."""
        return {
            topic: {route.name_server: _readable(route) for route in seen.routes if route.answer == OK}
            for topic, seen in self.topics.items()
        }

    @cached_property
    def routes(self) -> Routes:
        """Readable queues by topic and broker, of all name servers together: the most that any tells."""
        found: Routes = {}
        for topic, seen in self.topics.items():
            of_topic = found[topic] = {}
            for broker in chain.from_iterable(route.brokers for route in seen.routes):
                if broker.perm & _READ and broker.read:
                    of_topic[broker.name] = max(broker.read, of_topic.get(broker.name, 0))
        return found

    @cached_property
    def brokers_of(self) -> dict[str, frozenset[str]]:
        """Brokers of a topic's routes, by topic, also those without a queue that can be read.

        A client takes the list of members from any of them (`MQClientInstance.findBrokerAddrByTopic`, 4.9.8 and 5.5.0).
        """
        return {
            topic: frozenset(broker.name for route in seen.routes for broker in route.brokers)
            for topic, seen in self.topics.items()
        }

    @cached_property
    def poorer(self) -> dict[str, tuple[str, ...]]:
        """Name servers that answer and know fewer queues of a topic than others do, by topic."""
        found = {}
        for topic, seen in self.topics.items():
            known = {
                route.name_server: frozenset(_readable(route)) for route in seen.routes if route.answer in {OK, MISSING}
            }
            every = frozenset[Queue]().union(*known.values())
            less = tuple(sorted(server for server, queues in known.items() if queues != every))
            if less and every:
                found[topic] = less
        return found

    def is_mapped(self, topic: str) -> bool:
        """Whether it is a static topic, whose logical queues are not those of its brokers."""
        return any(route.mapped for route in self.topics[topic].routes)

    def lists_of(self, topic: str) -> dict[str, tuple[str, ...]]:
        """The lists that clients of a topic can be given, by broker: those of its brokers that have any client."""
        return {name: clients for name, clients in self.lists.items() if clients and name in self.brokers_of[topic]}

    @cached_property
    def held(self) -> dict[str, dict[str, tuple[int, ...]] | None]:
        """Queues that each client holds, by unit, dropped ones left out; None if unknown.

        One that does not answer holds what it last told. A client that tells no queues at all (DefaultMQPullConsumer)
        holds what it wants.
        """
        found: dict[str, dict[str, tuple[int, ...]] | None] = {}
        for client in self.clients:
            member, before = self.told.get(client), self.assumed.get(client)
            found[client] = None
            if member is not None and member.queues is not None:
                kept = [queue for queue in member.queues if not queue.dropped and not is_dead_letters(queue.topic)]
                held = grouped((unit_of(queue.topic, queue.broker), queue.queue) for queue in kept)
                found[client] = {unit: tuple(sorted(set(numbers))) for unit, numbers in sorted(held.items())}
            elif member is None and before is not None and before.assigned is not None:
                found[client] = dict(before.assigned)
        return found

    @cached_property
    def holders(self) -> dict[str, dict[Queue, tuple[str, ...]]]:
        """Clients that hold a queue, by topic and queue."""
        found: dict[str, dict[Queue, tuple[str, ...]]] = {topic: {} for topic in self.topics}
        units = grouped((unit, client) for client, held in self.held.items() for unit in held or ())
        for unit, clients in units.items():
            topic, broker = split(unit)
            holders = grouped((number, client) for client in clients for number in (self.held[client] or {})[unit])
            of_unit = {(broker or "", number): tuple(of) for number, of in holders.items()}
            found.setdefault(topic, {}).update(of_unit)
        return found

    def orphans(self, topic: str) -> list[Queue]:
        """Queues of a topic's routes that no client holds."""
        return [queue for queue in queues_of(self.routes[topic]) if queue not in self.holders[topic]]

    def strategies_of(self, topic: str) -> set[str]:
        """Names of the strategies that subscribers of a topic run, as far as they answered."""
        return {self.runs[client].name for client in self.subscribers.get(topic, ()) if client in self.runs}

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """Clients of which nobody knows what they hold, or that do not answer now."""
        return tuple(client for client in self.clients if client not in self.told or self.held[client] is None)

    @cached_property
    def runs(self) -> dict[str, Runs]:
        """The strategy of each client that answered."""
        return {client: runs(member, self.allocation) for client, member in self.told.items()}

    @cached_property
    def strategy(self) -> str | None:
        """The strategy that most clients tell; None where none tells any."""
        names = Counter(self.strategies.values())
        return max(sorted(names), key=names.__getitem__, default=None)

    @cached_property
    def message_model(self) -> str | None:
        """The group's message model; BROADCASTING if anyone says so."""
        said = {member.message_model for member in self.told.values()} | {
            broker.message_model for broker in self.masters.values() if broker.clients
        }
        if BROADCASTING in said:
            return BROADCASTING
        return next((model for model in said if model), None)

    def is_pop(self, topic: str) -> bool:
        """Whether brokers hand out a topic's messages (POP), so that clients share its queues."""
        if self._is_pop:
            return not is_retry(topic)
        return topic in self._pop_topics

    @cached_property
    def _is_pop(self) -> bool:
        return any(
            member.client_rebalance is False or member.consume_type == POP for member in self.told.values()
        ) or any(broker.consume_type == POP for broker in self.masters.values() if broker.clients)

    @cached_property
    def _pop_topics(self) -> frozenset[str]:
        queues = chain.from_iterable(member.queues or () for member in self.told.values())
        return frozenset(queue.topic for queue in queues if queue.pop)

    @cached_property
    def takes_by_hand(self) -> bool:
        """Whether all clients that answer take queues as they like (DefaultMQPullConsumer)."""
        return bool(self.told) and all(
            member.queues is None and member.consume_type == PULL for member in self.told.values()
        )

    def not_applicable(self, topic: str) -> str | None:
        """Why there is nothing to judge about the owners of a topic's queues; None if there is."""
        if not self.clients:
            return NO_MEMBERS
        if self.message_model == BROADCASTING:
            return "BROADCASTING: each member reads all queues"
        if self.is_pop(topic):
            return "POP: brokers hand out messages, and members share queues"
        if self.takes_by_hand:
            return "its members take queues by themselves (DefaultMQPullConsumer)"
        if not self.subscribers.get(topic) and None not in self.subscriptions.values():
            return "no member subscribes to it"
        return None

    @cached_property
    def judged_topics(self) -> tuple[str, ...]:
        """Topics whose owners can be right or wrong, sorted."""
        return tuple(topic for topic in sorted(self.topics) if self.not_applicable(topic) is None)

    @cached_property
    def strategies(self) -> dict[str, str]:
        """Strategy by client, of those that tell theirs."""
        return {client: self.runs[client].name for client, member in self.told.items() if member.strategy is not None}

    @cached_property
    def facts(self) -> DecisionInputs:
        """What clients decide by."""
        subscriptions = {
            client: tuple([one.topic for one in member.subscriptions if not is_retry(one.topic)])
            for client, member in self.told.items()
            if member.subscriptions is not None
        }
        return DecisionInputs(
            routes=self.routes,
            poorer=tuple(sorted({server for servers in self.poorer.values() for server in servers})),
            lists=self.lists,
            strategies=self.strategies,
            subscriptions=subscriptions,
            started={client: member.started for client, member in self.told.items() if member.started >= 0},
        )

    @cached_property
    def duplicates(self) -> dict[str, list[str]]:
        """Brokers that have a client more than once on their list, by client."""
        return grouped((client, broker) for broker, clients in self.lists.items() for client in twice(clients))

    @cached_property
    def missing(self) -> dict[str, list[str]]:
        """Brokers that should know a client and do not, by client.

        A client tells all brokers of the topics that it knows that it is there, so every broker of a topic that it
        subscribes to should have it. Where its subscriptions are not known, nobody can say; nor of a client that is on
        no list now, which may have left.
        """
        lacking = []
        for broker, clients in self.lists.items():
            topics = [topic for topic, brokers in self.brokers_of.items() if broker in brokers]
            should = frozenset[str]().union(*(self.subscribers.get(topic, ()) for topic in topics))
            lacking += [(client, broker) for client in (should & self._on_lists).difference(clients)]
        return grouped(sorted(lacking))

    def addresses_of(self, client: str) -> tuple[str, ...]:
        """Addresses under which brokers know a client, sorted."""
        return tuple(sorted(set(self._addresses.get(client, ()))))

    @cached_property
    def _addresses(self) -> dict[str, list[str]]:
        channels = chain.from_iterable(broker.channels or () for broker in self.observation.brokers)
        return grouped((channel.client_id, channel.address) for channel in channels)


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """All values of each key, in order."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def twice(clients: Sequence[str]) -> list[str]:
    """Clients that are more than once on a sorted list, sorted."""
    return sorted({one for one, other in pairwise(clients) if one == other})


def is_retry(topic: str) -> bool:
    """Whether a topic has messages that are delivered again: every push consumer of the group subscribes to it."""
    return topic.startswith(_RETRY)


def is_dead_letters(topic: str) -> bool:
    """Whether a topic has messages that were given up: no member subscribes to it, so it has no lag and no owner."""
    return topic.startswith(_DEAD)


def queues_of(routes: Mapping[str, int]) -> Iterable[Queue]:
    """The queues of a route of one topic."""
    return ((broker, number) for broker, count in routes.items() for number in range(count))


def _readable(route: RouteSeen) -> tuple[Queue, ...]:
    return tuple(
        sorted(
            (broker.name, number) for broker in route.brokers if broker.perm & _READ for number in range(broker.read)
        )
    )
