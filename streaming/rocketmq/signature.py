"""The signature that servers with access control want: `AclClientRPCHook` and `AclSigner` of 4.9.8 and 5.5.0.

The fields get `AccessKey` (and `SecurityToken`); then `Signature` is the base64 of HMAC-SHA1, with the secret key, over
the values of all fields in the order of their names, followed by the body.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

_SIGNATURE = "Signature"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who asks.

    Attributes:
        access_key: Name of the user.
        secret_key: Its secret.
        security_token: Token of a temporary login; None for none.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)


def signed(fields: Mapping[str, str], body: bytes | None, credentials: Credentials) -> dict[str, str]:
    """The fields with the signature that covers them and the body."""
    found = {name: value for name, value in fields.items() if name != _SIGNATURE}
    found["AccessKey"] = credentials.access_key
    if credentials.security_token is not None:
        found["SecurityToken"] = credentials.security_token
    # (Java's TreeMap sorts by UTF-16 units. Names of fields are ASCII.)
    content = "".join(found[name] for name in sorted(found)).encode() + (body or b"")
    digest = hmac.digest(credentials.secret_key.encode(), content, "sha1")
    return found | {_SIGNATURE: b64encode(digest).decode("ascii")}
