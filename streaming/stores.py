"""Object stores: which lakes are on one, and what is wrong with one in words that people can act on."""

from __future__ import annotations

import re

_SCHEMES = frozenset({"s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss"})

# By what a store or its client says; the first that fits. (Checked against versitygw and deltalake 1.6.6.)
_CAUSES = (
    (r"169\.254\.(169\.254|170\.2)|metadata\.google", "neither the environment nor the machine has credentials"),
    (r"ExpiredToken|RequestExpired|TokenRefreshRequired", "the credentials have expired"),
    (r"NoSuchBucket", "there is no such bucket"),
    (r"URL scheme is not allowed", "the endpoint is http://, which needs AWS_ALLOW_HTTP=true"),
    (r"conditional put is disabled", "AWS_CONDITIONAL_PUT is set to disabled: unset it, or commits would be lost"),
    (r"AccessDenied|\b40[13] \w|SignatureDoesNotMatch|InvalidAccessKeyId|XAdminUserNotFound|necessary privileges",
     "the store refuses the credentials"),
    (r"SlowDown|ServiceUnavailable|\b50[0234] \w", "the store is down or overloaded"),
    (r"[Dd]ns error|failed to lookup", "the store's name is not known here"),
    (r"error sending request|[Cc]onnection (refused|reset|closed)|timed out|tcp connect|operation timed",
     "the store does not answer"),
)  # fmt: skip

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
_STATUS = re.compile(r"status code\W+(\d{3})")

# What follows is the answer's body, which can quote a session's token, or a debug dump.
_REST = re.compile(r"(<\?xml|<Error|Debug source:).*", re.DOTALL)

_LONGEST = 300


def on_object_store(uri: str) -> bool:
    """Whether a lake or a checkpoint is on an object store, and not a folder."""
    return _scheme(uri) in _SCHEMES


def on_s3(uri: str) -> bool:
    """Whether it is on S3, or a store with its interface."""
    return _scheme(uri) in ("s3", "s3a")


def _scheme(uri: str) -> str:
    scheme, separator, _ = uri.partition("://")
    if separator:
        return scheme.lower()
    return ""


def cause_of(error: BaseException) -> str:
    """Why a table or an object could not be read or written: one line, without bodies of answers or colours."""
    text = _COLOUR.sub("", str(error))
    code = _CODE.search(text) or _STATUS.search(text)
    for pattern, told in _CAUSES:
        if re.search(pattern, text):
            if code:
                return f"{told} ({code[1]})"
            return told
    told = ": ".join(line.strip(" ↳\t") for line in _REST.sub("", text).splitlines() if line.strip(" ↳\t"))
    return " ".join(told.split())[:_LONGEST] or type(error).__name__
