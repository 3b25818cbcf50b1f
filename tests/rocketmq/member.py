"""A member of a RocketMQ group: heartbeats, rebalances and pulls as the Java client does, over sockets of its own.

To the brokers it is a client like any other. It decides by the same strategies (`assignors.rocketmq`), from a route of
one name server and a list of one broker, hears of changes (request 40), and answers what it holds (request 307). It
can also be made to go wrong: to stay away from a broker, to freeze, to vanish.

The file is long because the order in which one client sends and answers is easier to follow in one place.
"""

from __future__ import annotations

import random
import selectors
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Final, Self

from assignors.rocketmq import (
    AllocateStrategy,
    CallWouldFail,
    MessageQueue,
    Options,
    sorted_clients,
    sorted_queues,
)
from streaming.rocketmq import Frame, encode_frame, read_text, take_frames
from tests.rocketmq.commands import (
    GET_CONSUMER_LIST_BY_GROUP,
    GET_CONSUMER_RUNNING_INFO,
    GET_ROUTEINFO_BY_TOPIC,
    HEART_BEAT,
    NOTIFY_CONSUMER_IDS_CHANGED,
    UNREGISTER_CLIENT,
    UPDATE_CONSUMER_OFFSET,
)
from tests.rocketmq.member_bodies import MemberProfile, heartbeat, running_info

PULL_MESSAGE: Final = 11
QUERY_CONSUMER_OFFSET: Final = 14

_VERSION: Final = 479  # V5_3_3, which brokers of both lines take
_ANSWER = 1  # the bit of `flag`
_ONEWAY = 2

_HEARTBEAT_S = 5.0
_REBALANCE_S = 20.0
_ROUTE_S = 30.0
_PULL_S = 0.2
_COMMIT_S = 1.0
_PULLED = 32
_WAIT_S = 5.0


class _Connection:
    """A connection to one server, in a selector; its methods raise OSError where it is lost."""

    def __init__(self, address: str, selector: selectors.BaseSelector) -> None:
        self.address = address
        self._selector = selector
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), _WAIT_S)
        self._incoming = bytearray()
        selector.register(self._socket, selectors.EVENT_READ, self)

    def send(self, frame: Frame) -> None:
        self._socket.sendall(encode_frame(frame))

    def read(self) -> list[Frame]:
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionResetError
        self._incoming += data
        return [frame for frame in take_frames(self._incoming) if isinstance(frame, Frame)]

    def close(self) -> None:
        self._selector.unregister(self._socket)
        self._socket.close()


class RocketMQMember:
    """One member in a thread of its own. A context manager, or `start` and `stop`, `vanish`, `freeze` and `thaw`."""

    def __init__(
        self,
        name_servers: Sequence[str],
        group: str,
        client_id: str,
        topics: Iterable[str],
        strategy: str = "AVG",
        *,
        options: Options | None = None,
        model: str = "CLUSTERING",
        orderly: bool = False,
        away_from: Iterable[str] = (),
        rebalance_s: float = _REBALANCE_S,
        route_s: float = _ROUTE_S,
        pulls: bool = True,
        language: str = "JAVA",
        seed: int | None = None,
    ) -> None:
        """Prepare it; nothing runs yet.

        Args:
            name_servers: The addresses it takes routes from; the first that answers.
            group: Its group.
            client_id: Its id, "ADDRESS@INSTANCE".
            topics: What it subscribes to, with "*".
            strategy: Name of its strategy, as in `assignors.rocketmq`.
            options: The strategy's options.
            model: "CLUSTERING" or "BROADCASTING".
            orderly: What it says of itself; it takes no locks.
            away_from: Names of brokers that it sends no heartbeat to, and does not ask.
            rebalance_s: From one rebalance to the next where nobody reports a change.
            route_s: From one question for its routes to the next.
            pulls: It pulls messages and commits; else it only holds queues.
            language: What it says of itself.
            seed: Chooses the broker that it asks for the list; None for a random one each time, as Java's client.
        """
        self.group, self.client_id = group, client_id
        self._name_servers = tuple(name_servers)
        self._topics = tuple(topics)
        self._strategy = AllocateStrategy(strategy, options or Options())
        self._model, self._orderly, self._language = model, orderly, language
        self._away = set(away_from)
        self._rebalance_s, self._route_s, self._pulls = rebalance_s, route_s, pulls
        self._random = random.Random(seed)
        self._selector = selectors.DefaultSelector()
        self._connections: dict[str, _Connection] = {}
        self._answers: dict[int, Frame] = {}
        self._requests: list[tuple[str, Frame]] = []
        self._opaque = 0
        self._routes: dict[str, dict[str, tuple[str, int]]] = {}
        self._offsets: dict[MessageQueue, int] = {}
        self._moved: set[MessageQueue] = set()
        self._held: frozenset[MessageQueue] = frozenset()
        self._started = int(time.time() * 1000)
        self._subscribed = self._started
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._frozen = threading.Event()
        self._leave = True
        self._changed = True
        self._thread = threading.Thread(target=self._run, name=f"member {client_id}", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def held(self) -> frozenset[MessageQueue]:
        """Queues that it holds now."""
        return self._held

    def start(self) -> None:
        """Join."""
        self._thread.start()

    def stop(self) -> None:
        """Commit, leave every broker, and end."""
        self._finish(leave=True)

    def vanish(self) -> None:
        """Close all connections without a word, as a process that was killed."""
        self._finish(leave=False)

    def freeze(self) -> None:
        """Do nothing any more, with all connections open, as a process that was stopped."""
        self._frozen.set()

    def thaw(self) -> None:
        """Go on."""
        self._frozen.clear()

    def keep_away(self, broker: str) -> None:
        """Send no heartbeat to a broker any more, and lose the connection to it."""
        with self._lock:
            self._away.add(broker)
            self._changed = True

    def come_back(self, broker: str) -> None:
        """Heartbeat to that broker again."""
        with self._lock:
            self._away.discard(broker)
            self._changed = True

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to other topics."""
        with self._lock:
            self._topics = tuple(topics)
            self._subscribed = int(time.time() * 1000)
            self._routes.clear()
            self._changed = True

    def use(self, strategy: str, options: Options | None = None) -> None:
        """Decide by another strategy from now on."""
        with self._lock:
            self._strategy = AllocateStrategy(strategy, options or Options())
            self._changed = True

    def _finish(self, *, leave: bool) -> None:
        self._leave = leave
        self._frozen.clear()
        self._end.set()
        self._thread.join(_WAIT_S * 2)

    # -- the thread

    def _run(self) -> None:
        due = dict.fromkeys(("heartbeat", "rebalance", "route", "pull", "commit"), 0.0)
        while not self._end.is_set():
            if self._frozen.is_set():
                self._end.wait(0.05)
                continue
            now = time.monotonic()
            with self._lock:
                if self._changed:
                    due["heartbeat"] = due["rebalance"] = 0.0
                    self._changed = False
                self._lose_the_avoided()
            if now >= due["route"]:
                self._find_routes()
                due["route"] = now + self._route_s
            if now >= due["heartbeat"]:
                self._heartbeat()
                due["heartbeat"] = now + _HEARTBEAT_S
            if now >= due["rebalance"]:
                self._rebalance()
                due["rebalance"] = now + (self._rebalance_s if self._routes else 1.0)
            if self._pulls and now >= due["pull"]:
                self._pull()
                due["pull"] = now + _PULL_S
            if self._pulls and now >= due["commit"]:
                self._commit()
                due["commit"] = now + _COMMIT_S
            self._listen(0.05)
        if self._leave:
            self._commit()
            for address in list(self._connections):
                if address not in self._name_servers:
                    fields = {"clientID": self.client_id, "consumerGroup": self.group}
                    self._ask(address, UNREGISTER_CLIENT, fields)
        for connection in self._connections.values():
            connection.close()
        self._selector.close()

    def _listen(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            connection: _Connection = key.data
            try:
                frames = connection.read()
            except OSError:
                self._lose(connection.address)
                continue
            for frame in frames:
                if frame.is_answer:
                    self._answers[frame.opaque] = frame
                else:
                    self._requests.append((connection.address, frame))
        requests, self._requests = self._requests, []
        for address, frame in requests:
            if frame.code == NOTIFY_CONSUMER_IDS_CHANGED:
                self._changed = True
            elif frame.code == GET_CONSUMER_RUNNING_INFO:
                body = running_info(self._about(), self._held, self._offsets)
                # The answer's flag marks it as one; the broker waits for its number.
                self._send(address, Frame(0, frame.opaque, _ANSWER, self._language, _VERSION, body=body))

    def _lose(self, address: str) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.close()

    def _send(self, address: str, frame: Frame) -> bool:
        try:
            connection = self._connections.get(address)
            if connection is None:
                connection = self._connections[address] = _Connection(address, self._selector)
            connection.send(frame)
        except OSError:
            self._lose(address)
            return False
        return True

    def _ask(self, address: str, code: int, fields: dict[str, str], body: bytes | None = None) -> Frame | None:
        self._opaque += 1
        opaque = self._opaque
        frame = Frame(code, opaque, 0, self._language, _VERSION, fields=fields, body=body)
        if not self._send(address, frame):
            return None
        deadline = time.monotonic() + _WAIT_S
        while opaque not in self._answers:
            if time.monotonic() > deadline or address not in self._connections or self._frozen.is_set():
                return None
            self._listen(0.02)
        return self._answers.pop(opaque)

    def _tell(self, address: str, code: int, fields: dict[str, str]) -> None:
        self._opaque += 1
        self._send(address, Frame(code, self._opaque, _ONEWAY, self._language, _VERSION, fields=fields))

    # -- what a member does

    @property
    def _all_topics(self) -> tuple[str, ...]:
        retry = (f"%RETRY%{self.group}",) if self._model == "CLUSTERING" else ()
        return (*self._topics, *retry)

    def _find_routes(self) -> None:
        """Address and readable queues of each broker, by topic."""
        for topic in self._all_topics:
            for name_server in self._name_servers:
                fields = {"topic": topic, "acceptStandardJsonOnly": "true"}
                answer = self._ask(name_server, GET_ROUTEINFO_BY_TOPIC, fields)
                if answer is None:
                    continue
                if answer.code == 0 and answer.body is not None:
                    route = read_text(answer.body)
                    addresses = {data["brokerName"]: data["brokerAddrs"] for data in route["brokerDatas"]}
                    self._routes[topic] = {
                        # One without a queue that can be read has the list of members as well.
                        data["brokerName"]: (
                            addresses[data["brokerName"]]["0"],
                            data["readQueueNums"] if data["perm"] & 4 else 0,
                        )
                        for data in route["queueDatas"]
                        if "0" in addresses.get(data["brokerName"], {})
                    }
                break

    def _brokers(self) -> dict[str, str]:
        """Addresses of the brokers that it talks to, by name."""
        found = {name: address for route in self._routes.values() for name, (address, _) in route.items()}
        return {name: address for name, address in found.items() if name not in self._away}

    def _lose_the_avoided(self) -> None:
        for route in self._routes.values():
            for name, (address, _) in route.items():
                if name in self._away:
                    self._lose(address)

    def _heartbeat(self) -> None:
        if len(self._routes) < len(self._all_topics):
            self._find_routes()  # brokers make the topic of retries at the first heartbeat
        for address in self._brokers().values():
            self._ask(address, HEART_BEAT, {}, heartbeat(self._about()))

    def _rebalance(self) -> None:
        held: set[MessageQueue] = set()
        for topic in self._all_topics:
            route = self._routes.get(topic)
            mine = {queue for queue in self._held if queue.topic == topic}
            if not route:
                held |= mine
                continue
            queues = [MessageQueue(topic, name, n) for name, (_, count) in route.items() for n in range(count)]
            if self._model == "BROADCASTING":
                held |= set(queues)
                continue
            clients = self._clients(route)
            if clients is None:
                held |= mine  # as the Java client does where it gets no list
                continue
            try:
                # A client that is not on the list gets nothing.
                share = self._strategy.prepare(sorted_queues(queues), sorted_clients(clients))(self.client_id)
            except CallWouldFail:
                held |= mine
            else:
                held |= set(share or ())
        for queue in self._held - held:
            self._commit_one(queue)
            self._moved.discard(queue)
            self._offsets.pop(queue, None)
        self._held = frozenset(held)

    def _clients(self, route: dict[str, tuple[str, int]]) -> list[str] | None:
        """The list of the group's clients on one broker of the topic."""
        names = sorted(name for name in route if name not in self._away)
        if not names:
            return None
        address, _ = route[self._random.choice(names)]
        answer = self._ask(address, GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": self.group})
        if answer is None or answer.code or answer.body is None:
            return None
        listed: list[str] = read_text(answer.body)["consumerIdList"]
        return listed

    def _pull(self) -> None:
        for queue in sorted(self._held):
            address = self._address_of(queue)
            if address is None or self._end.is_set():
                continue
            at = self._offsets.get(queue)
            if at is None:
                at = self._offset_to_begin_with(address, queue)
                if at is None:
                    continue
                self._offsets[queue] = at
            answer = self._ask(
                address,
                PULL_MESSAGE,
                {
                    **self._place(queue),
                    "queueOffset": str(at),
                    "maxMsgNums": str(_PULLED),
                    "sysFlag": "4",  # with the subscription, without waiting
                    "commitOffset": "0",
                    "suspendTimeoutMillis": "0",
                    "subscription": "*",
                    "subVersion": str(self._subscribed),
                    "expressionType": "TAG",
                },
            )
            after = (answer.fields or {}).get("nextBeginOffset") if answer is not None else None
            if after is not None and int(after) != at:
                self._offsets[queue] = int(after)
                self._moved.add(queue)

    def _offset_to_begin_with(self, address: str, queue: MessageQueue) -> int | None:
        answer = self._ask(address, QUERY_CONSUMER_OFFSET, self._place(queue))
        if answer is None:
            return None
        return int((answer.fields or {}).get("offset", 0)) if answer.code == 0 else 0

    def _commit(self) -> None:
        # All that ever moved, as Java's `RemoteBrokerOffsetStore.persistAll`: a commit may be lost, or overtaken by an
        # older one of the member that held the queue before.
        for queue in list(self._moved):
            self._commit_one(queue)

    def _commit_one(self, queue: MessageQueue) -> None:
        address = self._address_of(queue)
        if queue in self._moved and address is not None and queue in self._offsets:
            fields = {**self._place(queue), "commitOffset": str(self._offsets[queue])}
            self._tell(address, UPDATE_CONSUMER_OFFSET, fields)

    def _place(self, queue: MessageQueue) -> dict[str, str]:
        return {"consumerGroup": self.group, "topic": queue.topic, "queueId": str(queue.queue)}

    def _address_of(self, queue: MessageQueue) -> str | None:
        found = self._routes.get(queue.topic, {}).get(queue.broker)
        return None if found is None or queue.broker in self._away else found[0]

    def _about(self) -> MemberProfile:
        return MemberProfile(
            self.client_id,
            self.group,
            self._model,
            self._orderly,
            self._language,
            self._strategy.name,
            self._started,
            self._subscribed,
            self._all_topics,
        )
