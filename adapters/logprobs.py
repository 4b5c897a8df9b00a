"""Log probabilities on the wire: Chat's entries, Completions' parallel arrays, prompt scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.events import TokenRecord, TokenScore
from engine.text.tokenizer import Tokenizer


class TokenNames:
    """What tokens are called in a reply: their text, or `token_id:N` where the client wants that.

    Text is decoded with U+FFFD for what is not UTF-8; `bytes` stay exact.
    """

    def __init__(self, tokenizer: Tokenizer, *, as_ids: bool) -> None:
        self._tokenizer = tokenizer
        self._as_ids = as_ids

    def name(self, token: int) -> str:
        return f"token_id:{token}" if self._as_ids else self.text(token)

    def text(self, token: int) -> str:
        return self.bytes(token).decode("utf-8", "replace")

    def bytes(self, token: int) -> bytes:
        return self._tokenizer.token_bytes(token)


def chat_logprobs(records: Iterable[TokenRecord], names: TokenNames) -> dict[str, object]:
    """The `logprobs` object of a Chat choice or chunk."""

    def entry(token: int, logprob: float) -> dict[str, object]:
        data = list(names.bytes(token))
        return {"token": names.name(token), "logprob": logprob, "bytes": data}

    content = [
        {
            **entry(score.token, score.logprob),
            "top_logprobs": [entry(token, logprob) for token, logprob in score.top],
        }
        for score in (record.score for record in records)
        if score is not None
    ]
    return {"content": content, "refusal": None}


class CompletionLogprobs:
    """The parallel arrays of a Completions choice or chunk."""

    def __init__(self, names: TokenNames) -> None:
        self._names = names
        self._tokens: list[str] = []
        self._logprobs: list[float | None] = []
        self._tops: list[dict[str, float] | None] = []
        self._offsets: list[int] = []

    def add_prompt(
        self,
        token_ids: Sequence[int],
        scores: Sequence[TokenScore | None],
        top: int,
        offset: int,
    ) -> int:
        """Echoed prompt tokens; offsets count the characters of those before. Returns the end."""
        for token, score in zip(token_ids, scores, strict=True):
            self._add(token, score, top, offset)
            offset += len(self._names.text(token))
        return offset

    def add(self, records: Iterable[TokenRecord], offset: int) -> None:
        """Generated tokens; `offset` is the length of the echoed text."""
        for record in records:
            self._add(record.token, record.score, None, offset + record.offset)

    def _add(self, token: int, score: TokenScore | None, top: int | None, offset: int) -> None:
        self._tokens.append(self._names.name(token))
        self._logprobs.append(score.logprob if score else None)
        self._offsets.append(offset)
        if score is None:
            self._tops.append(None)
            return
        tops: dict[str, float] = {}
        for other, logprob in (*score.top[:top], (token, score.logprob)):
            tops.setdefault(self._names.name(other), logprob)
        self._tops.append(tops)

    def encode(self) -> dict[str, object]:
        return {
            "tokens": self._tokens,
            "token_logprobs": self._logprobs,
            "top_logprobs": self._tops,
            "text_offset": self._offsets,
        }


def prompt_logprobs(
    scores: Iterable[TokenScore | None], top: int, names: TokenNames
) -> list[dict[str, object] | None]:
    """The `prompt_logprobs` list: for each place the actual token and its likeliest rivals."""
    return [None if score is None else _position(score, top, names) for score in scores]


def _position(score: TokenScore, top: int, names: TokenNames) -> dict[str, object]:
    values = [logprob for _, logprob in score.top]
    position: dict[str, object] = {
        str(score.token): _ranked(score.token, score.logprob, score.rank, names)
    }
    for token, logprob in score.top[:top]:
        rank = 1 + sum(other > logprob for other in values)
        position.setdefault(str(token), _ranked(token, logprob, rank, names))
    return position


def _ranked(token: int, logprob: float, rank: int, names: TokenNames) -> dict[str, object]:
    return {"logprob": logprob, "rank": rank, "decoded_token": names.text(token)}
