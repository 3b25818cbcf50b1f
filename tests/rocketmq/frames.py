"""Frames as property tests draw them: what both header types can carry."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from streaming.rocketmq import JSON, ROCKETMQ, Frame, encode_frame
from streaming.rocketmq.frames import LANGUAGES

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_INT16 = st.integers(-(2**15), 2**15 - 1)
_INT32 = st.integers(-(2**31), 2**31 - 1)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Any frame; in a ROCKETMQ header nothing that it cannot hold."""
    header = draw(st.sampled_from([JSON, ROCKETMQ]))
    small = header == ROCKETMQ
    text = _TEXTS.filter(bool) if small else _TEXTS
    return Frame(
        code=draw(_INT16 if small else _INT32),
        opaque=draw(_INT32),
        flag=draw(st.integers(0, 3)),
        language=draw(st.sampled_from(LANGUAGES)),
        version=draw(_INT16 if small else _INT32),
        remark=draw(st.none() | text),
        fields=draw(st.none() | st.dictionaries(text, text, min_size=int(small), max_size=4)),
        body=draw(st.none() | st.binary(min_size=1, max_size=40)),
        header=header,
    )


def encoded(frame: Frame) -> bytes:
    """A frame with the header that it says, which a server may choose."""
    if frame.header == JSON:
        return encode_frame(frame)
    language = LANGUAGES.index(frame.language) if isinstance(frame.language, str) else frame.language or 0
    texts = b"".join(_sized(name, 2) + _sized(value, 4) for name, value in (frame.fields or {}).items())
    head = struct.pack(">hbhii", frame.code, language, frame.version, frame.opaque, frame.flag)
    header = head + _sized(frame.remark or "", 4) + len(texts).to_bytes(4, "big") + texts
    rest = (ROCKETMQ << 24 | len(header)).to_bytes(4, "big") + header + (frame.body or b"")
    return len(rest).to_bytes(4, "big") + rest


def _sized(text: str, width: int) -> bytes:
    return len(text.encode()).to_bytes(width, "big") + text.encode()
