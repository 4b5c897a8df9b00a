"""Conversations to token ids, through the chat template that comes with the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from engine.conversation import Conversation
from engine.errors import RequestError, StartupError
from engine.text.control import Spellings
from engine.text.gguf_meta import read_metadata
from engine.text.guard import Guard, strings, unused_characters
from engine.text.jinja import TemplateRefusal, compile_template, render_template
from engine.text.tokenizer import Tokenizer
from engine.text.turns import Abilities, Turn, arrange, probe
from engine.text.vocabulary import read_json

# For a model without a template whose vocabulary has these tokens: it was trained on them.
_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


class ChatTemplate:
    """A compiled template and the tokenizer that reads its output. Threads may share it."""

    def __init__(self, source: str | None, tokenizer: Tokenizer) -> None:
        """`source` None falls back to ChatML if the vocabulary knows it, else `render` refuses.

        Raises StartupError when the source does not compile.
        """
        if source is None and "<|im_start|>" in tokenizer.control_tokens:
            source = _CHATML
        self._tokenizer = tokenizer
        self._markup = Spellings(
            content
            for content, number in tokenizer.control_tokens.items()
            if number not in tokenizer.special_ids
        )
        try:
            self._template = None if source is None else compile_template(source)
        except (jinja2.TemplateError, RecursionError) as error:
            line = f"line {error.lineno}: " if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise StartupError(f"the chat template does not compile: {line}{error}") from None

    @classmethod
    def load(cls, path: Path, tokenizer: Tokenizer) -> ChatTemplate:
        """Read the template of a Hugging Face folder or a GGUF file. Raises StartupError."""
        if path.is_dir():
            return cls(_folder_template(path), tokenizer)
        source = read_metadata(path).get("tokenizer.chat_template")
        return cls(source if isinstance(source, str) else None, tokenizer)

    def render(self, conversation: Conversation) -> tuple[int, ...]:
        """Token ids of the prompt. Raises RequestError for what the template cannot express."""
        if self._template is None:
            raise RequestError("the loaded model has no chat template", "messages")
        if not conversation.messages:
            raise RequestError("messages must hold at least one message", "messages")
        _check_continuation(conversation)
        turns = arrange(conversation.messages, self._abilities)
        guard, mark = self._guard(turns, conversation.template_kwargs)
        messages = [_protected(turn, guard) for turn in turns]
        if conversation.continue_final:
            messages[-1]["content"] += mark
        text = self._run(
            self._template,
            {
                "tools": None,
                "documents": None,
                **_options(conversation.template_kwargs, guard),
                **self._tokenizer.special_tokens,
                "messages": messages,
                "add_generation_prompt": conversation.add_generation_prompt,
            },
            guard.char,
        )
        if conversation.continue_final:
            text = _cut(text, mark)
        ids = self._tokenizer.encode_rendered(
            text, guard=guard.char, add_special_tokens=conversation.add_special_tokens
        )
        return tuple(ids)

    @cached_property
    def _abilities(self) -> Abilities:
        return probe(self._try)

    def _try(self, turns: Sequence[Turn]) -> str | None:
        assert self._template is not None
        context = {
            "tools": None,
            "documents": None,
            **self._tokenizer.special_tokens,
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
            "add_generation_prompt": False,
        }
        try:
            return self._run(self._template, context, "")
        except RequestError:
            return None

    def _run(self, template: jinja2.Template, context: Mapping[str, object], guard: str) -> str:
        """Render; every failure is the client's to see, since other messages may well render."""
        try:
            return render_template(template, context)
        except TemplateRefusal as refusal:
            message = str(refusal)
        except Exception as error:  # a template is a program: it can fail in every way
            message = f"the chat template cannot render these messages: {_reason(error)}"
        raise RequestError(message.replace(guard, "") if guard else message, "messages")

    def _guard(self, turns: Iterable[Turn], options: Mapping[str, object]) -> tuple[Guard, str]:
        """A guard, and a mark for the end of the last message, that no text of the request has."""
        texts = [
            text for turn in turns for text in (turn.content, turn.reasoning, turn.name) if text
        ]
        try:
            texts += strings(options)
        except RecursionError:
            raise _too_deep() from None
        char, mark = unused_characters(texts, 2)
        return Guard(char, self._tokenizer.spellings, self._markup), mark


def _protected(turn: Turn, guard: Guard) -> dict[str, str]:
    protect = guard.answer if turn.role == "assistant" else guard.text
    message = {"role": turn.role, "content": protect(turn.content)}
    if turn.reasoning is not None:
        message["reasoning_content"] = guard.text(turn.reasoning)
    if turn.name is not None:
        message["name"] = guard.text(turn.name)
    return message


def _options(options: Mapping[str, object], guard: Guard) -> dict[str, Any]:
    try:
        copy = guard.value(dict(options))
    except RecursionError:
        raise _too_deep() from None
    assert isinstance(copy, dict)
    return copy


def _too_deep() -> RequestError:
    return RequestError("chat_template_kwargs is nested too deeply", "chat_template_kwargs")


def _check_continuation(conversation: Conversation) -> None:
    if not conversation.continue_final:
        return
    if conversation.add_generation_prompt:
        raise RequestError(
            "continue_final_message and add_generation_prompt cannot both be true",
            "continue_final_message",
        )
    if conversation.messages[-1].role not in ("user", "assistant"):
        raise RequestError(
            "continue_final_message needs a last message of the assistant or the user",
            "continue_final_message",
        )


def _cut(text: str, mark: str) -> str:
    """The output up to the end of the last message, before what the template closes it with."""
    end = text.rfind(mark)
    if end < 0:
        raise RequestError(
            "continue_final_message: the chat template does not show the text of the last message",
            "continue_final_message",
        )
    return text[:end].replace(mark, "")


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it recurses too deeply"
    if isinstance(error, MemoryError):
        return "it needs too much memory"
    return f"{type(error).__name__}: {error}"


def _folder_template(path: Path) -> str | None:
    file = path / "chat_template.jinja"
    if file.is_file():
        try:
            return file.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise StartupError(f"cannot read {file}: {error}") from None
    declared = read_json(path / "tokenizer_config.json").get("chat_template")
    if isinstance(declared, list):
        entries = [entry for entry in declared if isinstance(entry, dict)]
        named = {entry.get("name"): entry.get("template") for entry in entries}
        declared = named.get("default") or next(iter(named.values()), None)
    return declared if isinstance(declared, str) else None
