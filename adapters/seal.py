"""Thoughts that leave the server: signed where clients may read them, sealed where they may not.

Both name the key that made them, so that what somebody changed is told from what another server,
or this one under another key, has written:

    flare-thinking-v1:KEY:TAG             a signature, beside the text
    flare-thinking-v1:KEY:sealed:CONTENT  the text itself, for this server alone

Equal arguments give equal results: a streamed reply and a buffered one do not differ.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import logging
import os
import secrets
import tempfile
import zlib
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

log = logging.getLogger("heliograph.seal")

Verdict = Literal["ours", "foreign", "broken"]
"""What a signature says about a text: it is as this server wrote it; nothing that this server can
judge, because there is no signature or one of another key; not what was signed."""

MARK = "flare-thinking-v1"
KEY_FILE = "seal.key"
MOST_BYTES = 16 * 1024 * 1024
"""UTF-8 bytes of the longest text that is unsealed."""

_SEALED = "sealed"
_KEY_BYTES = 32
_TAG_BYTES = 16  # RFC 2104, section 5: not less than half of the hash
_NONCE_BYTES = 12  # NIST SP 800-38D, section 5.2.1.1: the length GCM is made for


class Seal:
    """Signs, seals and opens with one key of 32 bytes, from any thread.

    `key_id`, eight hexadecimal digits, names the key to everyone and tells nothing about it.
    """

    def __init__(self, master: bytes) -> None:
        self.key_id = _subkey(master, "name", 4).hex()
        self._signing = _subkey(master, "sign")
        self._nonces = _subkey(master, "nonce")
        self._cipher = AESGCM(_subkey(master, "seal"))

    @classmethod
    def load(cls, folder: Path | None) -> Seal:
        """Use the key that a state folder keeps, None being the user's; the first start makes it.

        Where that cannot be done, a warning says why, and the key is one of this process only: its
        thoughts are foreign to the next. A file that holds something else is left as it is.
        """
        path = (_users_folder() if folder is None else folder) / KEY_FILE
        try:
            return cls(_kept_key(path.expanduser()))
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: nobody's home
            reason = error.strerror if isinstance(error, OSError) else error
            log.warning(
                "no key for thoughts in %s (%s): after a restart, those of this run are foreign",
                path, reason,
            )  # fmt: skip
        return cls(secrets.token_bytes(_KEY_BYTES))

    def sign(self, text: str) -> str:
        """The signature of a text that stays readable."""
        return f"{MARK}:{self.key_id}:{self._tag(text)}"

    def seal(self, text: str, tenant: str, model: str) -> str:
        """A text as something that only `unseal` can read, for the same tenant and model."""
        packed = zlib.compress(_bytes(text))
        bound = _bound_to(tenant, model)
        # Two contents under one nonce would give the key away (NIST SP 800-38D, appendix A), so it
        # is made of all that is encrypted: as packed, which need not be the same for every zlib.
        nonce = hmac.digest(self._nonces, bound + packed, "sha256")[:_NONCE_BYTES]
        content = nonce + self._cipher.encrypt(nonce, packed, bound)
        return f"{MARK}:{self.key_id}:{_SEALED}:{_encoded(content)}"

    def unseal(self, content: str, tenant: str, model: str) -> str | None:
        """The text that `seal` was given.

        None for what was not sealed with this key, this tenant and this model, for what was changed
        since, and for texts of more than MOST_BYTES.
        """
        word, _, encoded = (self._own(content) or "").partition(":")
        sealed = _decoded(encoded) if word == _SEALED else None
        if sealed is None:
            return None
        nonce, encrypted = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            packed = self._cipher.decrypt(nonce, encrypted, _bound_to(tenant, model))
        except (InvalidTag, ValueError):  # ValueError: too short for a nonce
            return None
        return _unpacked(packed)

    def check(self, signature: str, text: str, tenant: str, model: str) -> Verdict:
        """Whether a text is what the signature beside it was made for.

        A sealed content is a signature as well, of the text in it. No text beside it stands for
        that one, which `unseal` returns.
        """
        own = self._own(signature)
        if own is None:
            return "foreign"
        if own.startswith(f"{_SEALED}:"):
            opened = self.unseal(signature, tenant, model)
            fits = opened is not None and (not text or _same(opened, text))
        else:
            fits = _same(own, self._tag(text))
        return "ours" if fits else "broken"

    def _tag(self, text: str) -> str:
        return _encoded(hmac.digest(self._signing, _bytes(text), "sha256")[:_TAG_BYTES])

    def _own(self, content: str) -> str | None:
        """What follows the name of this key; None for what names another or none."""
        mark, _, rest = content.partition(":")
        key_id, _, own = rest.partition(":")
        return own if (mark, key_id) == (MARK, self.key_id) else None


def _subkey(master: bytes, purpose: str, length: int = _KEY_BYTES) -> bytes:
    """Bytes for one purpose, from which neither the key nor the other subkeys follow (RFC 5869)."""
    info = f"heliograph thoughts v1 {purpose}".encode()
    return HKDF(SHA256(), length, salt=None, info=info).derive(master)


def _bound_to(tenant: str, model: str) -> bytes:
    """The associated data of a sealed content; lengths keep ("a", "bc") apart from ("ab", "c")."""
    parts = (b"reasoning", _bytes(tenant), _bytes(model))
    return b"".join(len(part).to_bytes(8) + part for part in parts)


def _unpacked(packed: bytes) -> str | None:
    """The text of what `seal` packed, unless it is longer than MOST_BYTES."""
    inflater = zlib.decompressobj()
    data = inflater.decompress(packed, MOST_BYTES + 1)
    return data.decode("utf-8", "surrogatepass") if len(data) <= MOST_BYTES else None


def _bytes(text: str) -> bytes:
    """Different bytes for different texts, lone surrogates included: JSON can spell them."""
    return text.encode("utf-8", "surrogatepass")


def _same(one: str, other: str) -> bool:
    """Equality, whose time tells nothing about where two texts of a length differ."""
    return hmac.compare_digest(_bytes(one), _bytes(other))


def _encoded(data: bytes) -> str:
    """RFC 4648, section 5, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes | None:
    """The reverse; None for what `_encoded` does not write, spare bits that are set included."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if _encoded(data) == text else None


def _users_folder() -> Path:
    """Where programs of this user keep state: XDG Base Directory Specification, version 0.8.

    "~" is not expanded yet, which may fail.
    """
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():  # the specification: ignore it
        base = Path("~/.local/state")
    return base / "heliograph"


def _kept_key(path: Path) -> bytes:
    """The key in a file, which is made if there is none. Raises OSError, and ValueError for a file
    that holds no key."""
    try:
        return _read_key(path)
    except FileNotFoundError:
        _make_key(path)
        return _read_key(path)  # another server's, if that one came first


def _read_key(path: Path) -> bytes:
    with path.open("rb") as file:
        text = file.read(1024)
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(
            f"not {2 * _KEY_BYTES} hexadecimal digits; remove the file to get a new key"
        )
    return key


def _make_key(path: Path) -> None:
    """Put a new key there, whole or not at all; one that is there by then stays. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, draft = tempfile.mkstemp(prefix=f".{KEY_FILE}-", dir=path.parent)  # mode 0600
    try:
        with open(number, "w") as file:
            file.write(f"{secrets.token_hex(_KEY_BYTES)}\n")
            file.flush()
            os.fsync(number)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # unlike a rename, it replaces nothing
    finally:
        os.unlink(draft)
