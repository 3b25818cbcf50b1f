"""Asks every client of every group what it holds, through a broker that knows it, without taking all its threads.

Clients that did not answer are left alone for a while, because each such question takes a broker's thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq.parts import member_seen
from streaming.records import NOT_ASKED, TIMEOUT, BrokerSeen, MemberSeen
from streaming.rocketmq import Answer, Question, Request

_FIRST_MS: Final = 20_000
"""Two rounds: a pause of a client's garbage collection is over by then."""

_LONGEST_MS: Final = 300_000
"""Clients of a proxy (gRPC) never answer; a client without heartbeats is off the lists after two minutes."""


class SilentClients:
    """Who is left alone, by group and client id: after how many silences, and until which round's time."""

    def __init__(self) -> None:
        self._silences: dict[tuple[str, str], tuple[int, int]] = {}

    def is_left_alone(self, group: str, client: str, time: int) -> bool:
        """Whether a client is not asked in a round of this time, ms."""
        _, until = self._silences.get((group, client), (0, 0))
        return until - _LONGEST_MS <= time < until

    def heard(self, group: str, client: str, time: int, *, answered: bool) -> None:
        """Note how a client answered in a round of this time: each further silence doubles the pause."""
        times, _ = self._silences.pop((group, client), (0, 0))
        if not answered:
            pause = min(_LONGEST_MS, _FIRST_MS * 2 ** min(times, 10))
            self._silences[group, client] = times + 1, time + pause

    def forget(self, there: Collection[tuple[str, str]]) -> None:
        """Forget clients that are on no list any more."""
        self._silences = {key: silence for key, silence in self._silences.items() if key in there}


_AT_ONCE_PER_BROKER = 8
"""Clients that one broker is asked for at once. It keeps a thread for each until the client answers, of 16 that it has
for all questions of administrators, and gives up after 10 s."""

_TIMEOUTS_PER_BROKER = 8
"""After so many clients without an answer a broker is asked for no more in the round: its threads are taken."""


_CLIENT_S = 2.0
"""How long a client may take to answer its broker."""

_Client = tuple[str, str]
"""Group and client id."""


class MemberQuestions:
    """Remembers from round to round which clients did not answer."""

    def __init__(self, ask: Callable[[Sequence[Question], Deadline], list[Answer]]) -> None:
        """Ask through a function.

        Args:
            ask: Asks the brokers.
        """
        self._ask = ask
        self._silent = SilentClients()

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
        brokers: dict[_Client, list[str]] = {}
        found: dict[_Client, MemberSeen] = {}
        for group, of_group in seen.items():
            for broker in of_group:
                for client in dict.fromkeys(broker.clients):
                    brokers.setdefault((group, client), []).append(broker.address)
                    found.setdefault((group, client), MemberSeen(client, NOT_ASKED))
                for channel in broker.channels or ():
                    told = MemberSeen(channel.client_id, NOT_ASKED, channel.language)
                    if found[group, channel.client_id].language is None:
                        found[group, channel.client_id] = told
        self._silent.forget(found)
        # Any broker that knows a client will do; so each has its share of the questions.
        asked = {
            key: addresses[place % len(addresses)]
            for place, (key, addresses) in enumerate(brokers.items())
            if not self._silent.is_left_alone(*key, time)
        }
        late = self._ask_through(asked, found, cuts, deadline)
        # The silence may be the broker's.
        again = {
            key: others[0]
            for key, first in asked.items()
            if found[key].answer == TIMEOUT
            and (others := [at for at in brokers[key] if at != first and late[at] < _TIMEOUTS_PER_BROKER])
        }
        self._ask_through(again, found, cuts, deadline)
        members: dict[str, list[MemberSeen]] = {}
        for (group, client), one in sorted(found.items()):
            if one.answer != NOT_ASKED:
                self._silent.heard(group, client, time, answered=one.answer != TIMEOUT)
            members.setdefault(group, []).append(one)
        return {group: tuple(of_group) for group, of_group in members.items()}

    def _ask_through(
        self,
        asked: Mapping[_Client, str],
        found: dict[_Client, MemberSeen],
        cuts: Mapping[str, set[str]],
        deadline: Deadline,
    ) -> Counter[str]:
        """Ask for each client through a broker; returns how often each broker gave no answer."""
        waiting: dict[str, list[_Client]] = {}
        for key, address in asked.items():
            waiting.setdefault(address, []).append(key)
        late: Counter[str] = Counter()
        while batch := [(at, key) for at, keys in waiting.items() for key in keys[:_AT_ONCE_PER_BROKER]]:
            questions = [self._question(address, *key) for address, key in batch]
            for (address, key), answer in zip(batch, self._ask(questions, deadline), strict=True):
                found[key] = member_seen(found[key], answer, cuts[key[0]])
                late[address] += found[key].answer == TIMEOUT
            waiting = {
                at: keys[_AT_ONCE_PER_BROKER:] for at, keys in waiting.items() if late[at] < _TIMEOUTS_PER_BROKER
            }
        return late

    def _question(self, address: str, group: str, client: str) -> Question:
        fields = {"consumerGroup": group, "clientId": client, "jstackEnable": "false"}
        return Question(address, Request.GET_CONSUMER_RUNNING_INFO, fields, _CLIENT_S)
