"""Asks every client of every group what it holds, through a broker that knows it, without taking all its threads.

Clients that did not answer are left alone for a while, because each such question takes a broker's thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq import parts
from streaming.records import NOT_ASKED, TIMEOUT, BrokerSeen, ChannelSeen, MemberSeen
from streaming.rocketmq import Answer, Question, Request, Unanswered

_FIRST_MS: Final = 20_000
"""Two rounds: a pause of a client's garbage collection is over by then."""

_LONGEST_MS: Final = 300_000
"""Clients of a proxy (gRPC) never answer; a client without heartbeats is off the lists after two minutes."""


@dataclass(frozen=True, slots=True)
class _Silence:
    times: int
    until: int


class SilentClients:
    """Who is left alone, by group and client id, and until which round's time."""

    def __init__(self) -> None:
        self._silences: dict[tuple[str, str], _Silence] = {}

    def is_left_alone(self, group: str, client: str, time: int) -> bool:
        """Whether a client is not asked in a round of this time, ms."""
        silence = self._silences.get((group, client))
        return silence is not None and silence.until - _LONGEST_MS <= time < silence.until

    def heard(self, group: str, client: str, time: int, *, answered: bool) -> None:
        """Note how a client answered in a round of this time: each further silence doubles the pause."""
        if answered:
            self._silences.pop((group, client), None)
            return
        before = self._silences.get((group, client), _Silence(0, 0)).times
        pause = min(_LONGEST_MS, _FIRST_MS * 2 ** min(before, 10))
        self._silences[group, client] = _Silence(before + 1, time + pause)

    def forget(self, there: Collection[tuple[str, str]]) -> None:
        """Forget clients that are on no list any more."""
        self._silences = {key: silence for key, silence in self._silences.items() if key in there}


_AT_ONCE_PER_BROKER = 8
"""Clients that one broker is asked for at once. It keeps a thread for each until the client answers, of 16 that it has
for all questions of administrators, and gives up after 10 s."""

_TIMEOUTS_PER_BROKER = 8
"""After so many clients without an answer a broker is asked for no more in the round: its threads are taken."""


_BROKERS_PER_CLIENT = 2
"""Brokers that are asked for a client in one round. A client that is silent through both does not answer."""


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
            deadline: The round's deadline.
        """
        round_of = _Round(seen, lambda group, client: self._silent.is_left_alone(group, client, time))
        while asked := round_of.next_questions():
            code = Request.GET_CONSUMER_RUNNING_INFO
            questions = [
                Question(
                    address, code, {"consumerGroup": group, "clientId": client, "jstackEnable": "false"}, self._client_s
                )
                for address, group, client in asked
            ]
            for (address, group, client), answer in zip(asked, self._ask(questions, deadline), strict=True):
                channel = round_of.channels.get((group, client))
                one = parts.member_seen(client, address, answer, channel, cuts[group])
                round_of.add_answer(group, one, address, lost=isinstance(answer, Unanswered) and not answer.late)
        for group, client in round_of.tried:
            self._silent.heard(group, client, time, answered=round_of.found[group, client].answer != TIMEOUT)
        members: dict[str, list[MemberSeen]] = {}
        for (group, _), one in sorted(round_of.found.items()):
            members.setdefault(group, []).append(one)
        return {group: tuple(of_group) for group, of_group in members.items()}


class _Round:
    """Whom to ask for which client next, and what has come, in one round.

    Attributes:
        found: What each client says, by group and client; "not_asked" until it was asked.
        tried: Brokers that a client was asked through.
        channels: A connection of each client, where a broker told one.
    """

    def __init__(self, seen: Mapping[str, Sequence[BrokerSeen]], is_left_alone: Callable[[str, str], bool]) -> None:
        self.found: dict[tuple[str, str], MemberSeen] = {}
        self.tried: dict[tuple[str, str], list[str]] = {}
        self.channels: dict[tuple[str, str], ChannelSeen] = {}
        self._waiting: dict[str, list[tuple[str, str]]] = {}
        self._brokers: dict[tuple[str, str], list[str]] = {}
        self._late: Counter[str] = Counter()
        for group, brokers in seen.items():
            lists: dict[str, list[str]] = {}
            for broker in brokers:
                for client in broker.clients:
                    lists.setdefault(client, []).append(broker.address)
                for channel in broker.channels or ():
                    self.channels.setdefault((group, channel.client_id), channel)
            for client, addresses in lists.items():
                if not is_left_alone(group, client):
                    # Any broker that knows it will do; so each has its share of the questions.
                    place = addresses[len(self.found) % len(addresses)]
                    self._waiting.setdefault(place, []).append((group, client))
                self._brokers[group, client] = list(dict.fromkeys(addresses))
                self.found[group, client] = _not_asked(client, self.channels.get((group, client)))

    def next_questions(self) -> list[tuple[str, str, str]]:
        """Broker, group and client of the questions that can be asked at once now."""
        asked = []
        for address, pairs in self._waiting.items():
            asked += [(address, *pair) for pair in pairs[:_AT_ONCE_PER_BROKER]]
            del pairs[:_AT_ONCE_PER_BROKER]
        return asked

    def add_answer(self, group: str, one: MemberSeen, address: str, *, lost: bool) -> None:
        """Take in what came through a broker; `lost` if the connection to it was."""
        key = group, one.client_id
        tried = self.tried.setdefault(key, [])
        tried.append(address)
        if one.answer != TIMEOUT:
            self.found[key] = one
            return
        if len(tried) == 1:
            self.found[key] = one
        self._late[address] += 1
        if lost or self._late[address] >= _TIMEOUTS_PER_BROKER:
            self._waiting[address].clear()
        # The silence may be the broker's.
        others = [at for at in self._brokers[key] if at not in tried and self._late[at] < _TIMEOUTS_PER_BROKER]
        if others and len(tried) < _BROKERS_PER_CLIENT:
            self._waiting.setdefault(others[0], []).append(key)


def _not_asked(client: str, channel: ChannelSeen | None) -> MemberSeen:
    if channel is None:
        return MemberSeen(client, NOT_ASKED)
    return MemberSeen(client, NOT_ASKED, language=channel.language, version=channel.version)
