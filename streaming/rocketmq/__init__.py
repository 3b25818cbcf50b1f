"""RocketMQ's remoting protocol: frames as pure functions, and a client that only asks."""

from __future__ import annotations

from streaming.rocketmq import answers, codes
from streaming.rocketmq.bodies import NotTheirs, as_json, read_text
from streaming.rocketmq.client import Answer, Client, Question, Unanswered
from streaming.rocketmq.codes import Request
from streaming.rocketmq.connection import Connection, ConnectionLost, host_and_port
from streaming.rocketmq.frames import (
    JSON,
    ROCKETMQ,
    Credentials,
    Frame,
    Malformed,
    decode_frame,
    decode_line,
    encode_frame,
)

__all__ = [
    "JSON",
    "ROCKETMQ",
    "Answer",
    "Client",
    "Connection",
    "ConnectionLost",
    "Credentials",
    "Frame",
    "Malformed",
    "NotTheirs",
    "Question",
    "Request",
    "Unanswered",
    "answers",
    "as_json",
    "codes",
    "decode_frame",
    "decode_line",
    "encode_frame",
    "host_and_port",
    "read_text",
]
