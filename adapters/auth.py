"""Who is asking: API keys, and the tenants they stand for."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from pathlib import Path

from adapters.envelope import HttpError
from engine.errors import StartupError


class Keys:
    """The accepted keys. Without any, every request is served, as the tenant ''."""

    def __init__(self, tenants: Mapping[str, str]) -> None:
        self._tenants = {key.encode(): name for key, name in tenants.items()}

    @classmethod
    def load(cls, path: Path | None) -> Keys:
        """Read a file that holds one key, or lines 'name = key'. Raises StartupError."""
        if path is None:
            return cls({})
        try:
            lines = [line.strip() for line in path.read_text().splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise StartupError(f"cannot read the key file {path}: {error}") from None
        lines = [line for line in lines if line and not line.startswith("#")]
        if not lines:
            raise StartupError(f"the key file {path} holds no key")
        if len(lines) == 1 and " = " not in lines[0]:
            return cls({lines[0]: ""})
        tenants: dict[str, str] = {}
        for line in lines:
            name, equals, key = (part.strip() for part in line.partition("="))
            if not (name and equals and key) or key in tenants:
                raise StartupError(
                    f"the key file {path} needs one 'name = key' with a new key a line"
                )
            tenants[key] = name
        return cls(tenants)

    def identify(self, headers: Mapping[str, str]) -> str:
        """The tenant of a request; one matching header is enough. Raises HttpError 401."""
        if not self._tenants:
            return ""
        given = [headers.get("x-api-key", "")]
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            given.append(token.strip())
        found: str | None = None
        for candidate in given:  # every key is compared, so that time tells nothing
            for key, name in self._tenants.items():
                if hmac.compare_digest(key, candidate.encode("latin-1", "replace")):
                    found = name
        if found is None:
            message = "a valid API key is needed: Authorization: Bearer KEY or x-api-key: KEY"
            headers = {"WWW-Authenticate": "Bearer"}
            raise HttpError(401, message, code="invalid_api_key", headers=headers)
        return found
