"""What can go wrong, by whose fault it is. Adapters translate these at one place each."""

from __future__ import annotations


class RequestError(Exception):
    """The client's fault: an HTTP 400 in the protocol's own envelope.

    `param` names the field as the client spelt it, `code` is the protocol-neutral reason
    (`context_length_exceeded`, `model_not_found`, ...) or None.
    """

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code


class ContextOverflow(RequestError):
    """The prompt, or the prompt with the output asked for, does not fit the context window."""

    def __init__(self, message: str, param: str, prompt_tokens: int, max_context: int) -> None:
        super().__init__(message, param, "context_length_exceeded")
        self.prompt_tokens = prompt_tokens
        self.max_context = max_context


class Overloaded(Exception):
    """Every place in the queue is taken; `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after


class EngineUnavailable(Exception):
    """The engine is loading, stopping or dead; `retry_after` is in seconds."""

    def __init__(self, message: str, retry_after: int = 5) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after


class GenerationFailed(Exception):
    """A generation that had started broke; the server's fault."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class StartupError(Exception):
    """The server cannot start: a missing or corrupt file, an unknown architecture, a port in use.

    The message is one line that says what to do.
    """
