"""Names as text: nothing in what is delivered acts at a target, whatever stands in the name of a group or a topic.

Two dangers, two means. Mentions, tags and links act in many services, in each by its own rules, and also where Apprise
sends a text as it is: a zero-width space parts the characters that would act together, everywhere. Marks (`*`, `_`,
...) change only how a name looks: they are escaped where the service reads markdown and Apprise takes it for text; the
other conversions are Apprise's own.

What stays: some services make a link of a bare host name (`a.example`) to that host.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from apprise import NotifyBase, NotifyFormat
from apprise.conversion import convert_between

__all__ = ["inert", "written"]

# U+200B, as the libraries of chat services put it into "@everyone". It is shown as nothing, and no name can bring one
# of its own: what cannot be printed is written out before.
_PART = "\u200b"

_ACTIVE = re.compile(
    r"""
      @(?=\S)                     # @everyone, @here, @channel, @room, @all, @user
    | <(?=\S)                     # HTML; <@U1>, <!channel>, <users/all>, <at user_id="all">, <url|text>
    | \](?=[(\[:])                # [text](link), [text][name], [name]: link
    | \[(?=CQ:)                   # [CQ:at,qq=all]
    | \((?=(?:met|rol|chn)\))     # (met)all(met)
    | :(?=//)                     # a link that is shown as itself still makes a service fetch it for a preview
    | \bwww(?=\.)
    """,
    re.VERBOSE | re.IGNORECASE,
)

# Services that read what they get as markdown, of which Apprise sends it as text.
_READS_MARKDOWN: Final = frozenset({"discord", "mmost", "mmosts", "revolt"})

# Services that read the title as markdown too, of which Apprise converts the body only.
_READS_MARKDOWN_IN_TITLES: Final = frozenset({"workflow", "workflows"})

_MARKS = re.compile(r"([\\`*_~|#>\[\]])")


def inert(text: str) -> str:
    """The text with nothing in it that mentions, links or marks up; looks the same."""
    return _ACTIVE.sub(lambda found: found[0] + _PART, text)


def written(schema: str, service: NotifyBase, title: str, body: str) -> tuple[str, str, NotifyFormat]:
    """Title and body in the format that a service reads.

    Args:
        schema: Schema of the target's URL, in small letters.
        service: Its plug-in.
        title: One line of text.
        body: Lines of text.

    Returns:
        Both, and the format for `notify`, which is not to convert again: some plug-ins leave that out.
    """
    title, body = inert(title), inert(body)
    reads = service.resolve_format(NotifyFormat.TEXT)
    as_read: Callable[[str], str] = partial(convert_between, NotifyFormat.TEXT, reads)
    if schema in _READS_MARKDOWN and reads == NotifyFormat.TEXT:
        return _escaped(title), _escaped(body), reads
    if service.title_maxlen <= 0:  # the title becomes a part of the body
        title = as_read(title)
    elif schema in _READS_MARKDOWN_IN_TITLES:
        title = _escaped(title)
    return title, as_read(body), reads


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)
