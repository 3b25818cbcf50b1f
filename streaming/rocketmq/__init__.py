"""RocketMQ's remoting protocol: frames as pure functions, and a client that only asks."""

from __future__ import annotations

from streaming.rocketmq.bodies import NotTheirs, as_json, read_text
from streaming.rocketmq.decode_json import decode_line
from streaming.rocketmq.frames import JSON, ROCKETMQ, Frame, Malformed, decode_frame, encode_frame

__all__ = [
    "JSON",
    "ROCKETMQ",
    "Frame",
    "Malformed",
    "NotTheirs",
    "as_json",
    "decode_frame",
    "decode_line",
    "encode_frame",
    "read_text",
]
