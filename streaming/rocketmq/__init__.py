"""RocketMQ's remoting protocol: frames as pure functions, and a client that only asks."""

from __future__ import annotations

from streaming.rocketmq import answers
from streaming.rocketmq.answers import read_text
from streaming.rocketmq.client import Answer, Client, Question, Request, Unanswered
from streaming.rocketmq.frames import (
    JSON,
    ROCKETMQ,
    Code,
    Credentials,
    Frame,
    Malformed,
    decode_frame,
    decode_line,
    encode_frame,
    take_frames,
)

__all__ = [
    "JSON",
    "ROCKETMQ",
    "Answer",
    "Client",
    "Code",
    "Credentials",
    "Frame",
    "Malformed",
    "Question",
    "Request",
    "Unanswered",
    "answers",
    "decode_frame",
    "decode_line",
    "encode_frame",
    "read_text",
    "take_frames",
]
