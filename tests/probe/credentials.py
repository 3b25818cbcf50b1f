"""What clients show to a secured broker, and what it verifies them with: certificates, and tokens with their key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from streaming.jars import find_java

__all__ = ["PASSWORD", "Tokens", "broker_store", "client_certificate", "trust"]

PASSWORD = "not-a-secret"


def broker_store(folder: Path) -> Path:
    """Create the broker's key store `broker.p12`; returns the file with its certificate."""
    make = ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=localhost", "-ext", "SAN=ip:127.0.0.1,dns:localhost"]
    ca_file = folder / "ca.pem"
    for command in (make, ["-exportcert", "-rfc", "-file", ca_file]):
        _keytool(folder / "broker.p12", "broker", *command)
    return ca_file


def trust(folder: Path, certificate: Path) -> None:
    """Add a client's certificate to the store `clients.p12`, which the broker trusts."""
    _keytool(folder / "clients.p12", certificate.stem, "-importcert", "-noprompt", "-file", certificate)


def client_certificate(folder: Path, name: str, password: str) -> tuple[Path, Path]:
    """Create a certificate of the user "evenkeel" that nobody has signed, and its encrypted key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = f"openssl req -x509 -newkey rsa:2048 -days 2 -subj /CN=evenkeel -passout pass:{password}"
    files = ["-keyout", key, "-out", certificate]
    subprocess.run([*shlex.split(command), *files], check=True, capture_output=True)
    return certificate, key


def _keytool(store: Path, alias: str, *command: str | Path) -> None:
    keytool = find_java().resolve().with_name("keytool")
    options = ["-keystore", store, "-storetype", "PKCS12", "-storepass", PASSWORD, "-alias", alias]
    subprocess.run([keytool, *command, *options], check=True, capture_output=True)


@dataclass(frozen=True, slots=True)
class Tokens:
    """An issuer of tokens that a broker verifies by the key in a file.

    Attributes:
        keys: The file, a JSON Web Key Set.
        secret: Its only key.
    """

    keys: Path
    secret: bytes = b"a key of thirty-two bytes at least"

    def write_keys(self) -> None:
        key = {"kty": "oct", "alg": "HS256", "kid": "evenkeel-test", "k": _text(self.secret)}
        self.keys.write_text(json.dumps({"keys": [key]}), "ascii")

    def token(self, seconds: float = 600.0, user: str = "evenkeel") -> str:
        """A JSON Web Token for a user, which ends after this time."""
        now = time.time()
        parts = {"alg": "HS256", "kid": "evenkeel-test"}, {"sub": user, "iat": int(now), "exp": int(now + seconds)}
        signed = ".".join(_text(json.dumps(part).encode()) for part in parts)
        return f"{signed}.{_text(hmac.digest(self.secret, signed.encode(), hashlib.sha256))}"


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
