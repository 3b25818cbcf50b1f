"""Asks every client of every group what it holds, through a broker that knows it, without taking all its threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq import parts
from streaming.probe.rocketmq.silent import SilentClients
from streaming.records import NOT_ASKED, TIMEOUT, BrokerSeen, ChannelSeen, MemberSeen
from streaming.rocketmq import Answer, Question, Request, Unanswered

_AT_ONCE_PER_BROKER = 8
"""Clients that one broker is asked for at once. It keeps a thread for each until the client answers, of 16 that it has
for all questions of administrators, and gives up after 10 s."""

_TIMEOUTS_PER_BROKER = 8
"""After so many clients without an answer a broker is asked for no more in the round: its threads are taken."""


class MemberQuestions:
    """Remembers from round to round which clients did not answer."""

    def __init__(self, ask: Callable[[Sequence[Question], Deadline], list[Answer]], client_s: float) -> None:
        """Ask through a function.

        Args:
            ask: Asks the brokers.
            client_s: How long a client may take to answer its broker.
        """
        self._ask = ask
        self._client_s = client_s
        self._silent = SilentClients()

    def forget_others(self, members: Mapping[str, Sequence[MemberSeen]]) -> None:
        """Forget clients that are on no list any more."""
        self._silent.forget({(group, one.client_id) for group, of_group in members.items() for one in of_group})

    def ask(
        self, seen: Mapping[str, Sequence[BrokerSeen]], cuts: Mapping[str, set[str]], time: int, deadline: Deadline
    ) -> dict[str, tuple[MemberSeen, ...]]:
        """What every client on a broker's list says of itself, by group.

        Args:
            seen: What each broker said, by group.
            cuts: Get the parts that are not whole, by group.
            time: The round's time, ms.
            deadline: Of the round.
        """
        waiting: dict[str, list[tuple[str, str]]] = {}
        channels: dict[tuple[str, str], ChannelSeen] = {}
        found: dict[tuple[str, str], MemberSeen] = {}
        for group, brokers in seen.items():
            lists: dict[str, list[str]] = {}
            for broker in brokers:
                for client in broker.clients:
                    lists.setdefault(client, []).append(broker.address)
                for channel in broker.channels or ():
                    channels.setdefault((group, channel.client_id), channel)
            for client, addresses in lists.items():
                if self._silent.is_left_alone(group, client, time):
                    found[group, client] = _not_asked(client, channels.get((group, client)))
                else:
                    # (Any broker that knows it will do; so each has its share of the questions.)
                    place = addresses[len(found) % len(addresses)]
                    found[group, client] = _not_asked(client, channels.get((group, client)))
                    waiting.setdefault(place, []).append((group, client))
        late: Counter[str] = Counter()
        while any(waiting.values()):
            asked: list[tuple[str, str, str]] = []
            for address, pairs in waiting.items():
                asked += [(address, *pair) for pair in pairs[:_AT_ONCE_PER_BROKER]]
                del pairs[:_AT_ONCE_PER_BROKER]
            code = Request.GET_CONSUMER_RUNNING_INFO
            questions = [
                Question(
                    address, code, {"consumerGroup": group, "clientId": client, "jstackEnable": "false"}, self._client_s
                )
                for address, group, client in asked
            ]
            for (address, group, client), answer in zip(asked, self._ask(questions, deadline), strict=True):
                one = parts.member_seen(client, address, answer, channels.get((group, client)), cuts[group])
                found[group, client] = one
                self._silent.heard(group, client, time, answered=one.answer != TIMEOUT)
                late[address] += one.answer == TIMEOUT
                if late[address] >= _TIMEOUTS_PER_BROKER or (isinstance(answer, Unanswered) and not answer.late):
                    waiting[address].clear()
        members: dict[str, list[MemberSeen]] = {}
        for (group, _), one in sorted(found.items()):
            members.setdefault(group, []).append(one)
        return {group: tuple(of_group) for group, of_group in members.items()}


def _not_asked(client: str, channel: ChannelSeen | None) -> MemberSeen:
    if channel is None:
        return MemberSeen(client, NOT_ASKED)
    return MemberSeen(client, NOT_ASKED, language=channel.language, version=channel.version)
