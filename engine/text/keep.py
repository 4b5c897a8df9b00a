"""How much of a prompt its client wants the prefix cache to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.conversation import Conversation, Message, Text
from engine.errors import RequestError
from engine.types import Prompt

_ANY_USER = Message("user", (Text("."),))


def kept_tokens(
    conversation: Conversation, prompt: Prompt, render: Callable[[Conversation], Prompt]
) -> int:
    """The leading tokens of `prompt` up to the end of the deepest message that is to be kept.

    They are those that the conversation has in common with one that ends there; 0 where no message
    is to be kept, or where the template cannot show that.
    """
    messages = conversation.messages
    end = next((at for at in range(len(messages), 0, -1) if messages[at - 1].keep), 0)
    if end in (0, len(messages)):
        return len(prompt.token_ids) if end else 0
    part = messages[:end]
    if part[-1].role in ("system", "developer"):
        part = (*part, _ANY_USER)  # many templates want a user, or show the system text in its turn
    cut = replace(conversation, messages=part, add_generation_prompt=False, continue_final=False)
    try:
        token_ids = render(cut).token_ids
    except RequestError:
        return 0
    pairs = zip(prompt.token_ids, token_ids, strict=False)
    shorter = min(len(prompt.token_ids), len(token_ids))
    return next((at for at, (ours, theirs) in enumerate(pairs) if ours != theirs), shorter)
