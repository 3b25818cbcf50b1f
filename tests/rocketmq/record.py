"""Records what name servers, brokers and clients of a release answer: `tests/rocketmq/data/<release>.jsonl`.

    python -m tests.rocketmq.record RELEASE FOLDER_WITH_ITS_JARS

A line per answer of a round, with the frame in hex, as it came. Recorded once per release, on a cluster of one
name server and two brokers with a group of three members of Java (`RocketMqMembers.java`, of that release).
The jars of older releases are in no set of `conf/jars.toml`: 5.3.3 resolves as a whole with Maven (rocketmq-namesrv,
rocketmq-broker, rocketmq-client); of 4.9.8 the registry has the client's side only, so its frames are made by its own
classes instead (`test_remoting.py`).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from streaming.config import Filters
from streaming.probe.deadline import Deadline
from streaming.probe.rocketmq.cluster import RocketMQCluster
from streaming.rocketmq import Client, Frame
from streaming.rocketmq import frames as frames_room
from tests.rocketmq import servers
from tests.rocketmq.java_members import JavaMembers
from tests.rocketmq.servers import EmbeddedRocketMQ

_DATA = Path(__file__).with_name("data")
_TIME = 1_795_582_476_897


def record(release: str, jars: list[Path]) -> None:
    """Play a small cluster and write its answers."""
    frames: list[bytes] = []
    plain = frames_room.decode_frame

    def kept(data: bytes) -> object:
        frames.append(data)
        return plain(data)

    servers.classpath = lambda _: jars  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder, EmbeddedRocketMQ(Path(folder)) as cluster:
        with cluster.commands() as commands:
            commands.create_topic("orders", 4)
            for broker in cluster.brokers:
                for queue in range(4):
                    commands.send("orders", broker, queue, [b"x"] * 3)
        members = [("AVG", f"10.0.0.{number}", f"{number}") for number in (1, 2, 3)]
        with JavaMembers(cluster.addresses, "checkout", ["orders"], members, jars=jars) as running, Client() as client:
            running.until_all_hold("orders", 8)
            frames_room.decode_frame = kept  # type: ignore[assignment]
            look = RocketMQCluster(client, cluster.addresses, Filters())
            look.observe_groups([], frozenset(), _TIME, Deadline.after(30))
    named = [(frame, plain(frame)) for frame in frames]
    lines = [json.dumps({"bytes": data.hex()}) for data, frame in named if isinstance(frame, Frame)]
    _DATA.mkdir(exist_ok=True)
    (_DATA / f"{release}.jsonl").write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    record(sys.argv[1], sorted(Path(sys.argv[2]).rglob("*.jar")))
