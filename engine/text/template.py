"""Conversations to token ids, through the chat template that comes with the model."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import cast

import jinja2

from engine.conversation import Conversation, Message, Reasoning, Text, ToolCall, ToolResult
from engine.dialects import registry
from engine.dialects.dialect import Dialect
from engine.dialects.marks import Marks
from engine.errors import RequestError, StartupError
from engine.text.abilities import Abilities
from engine.text.attempt import Attempt, Protection
from engine.text.control import Spellings
from engine.text.effort import Applied, Controls, Defaults, Efforts
from engine.text.guard import Guard, strings, unused_characters
from engine.text.jinja import TemplateRefusal, compile_template, render_template
from engine.text.probe import probe
from engine.text.source import template_source
from engine.text.tokenizer import Tokenizer
from engine.types import Prompt

log = logging.getLogger("heliograph.api")

# For a model without a template whose vocabulary has these tokens: it was trained on them.
_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_NO_DEFAULTS = Defaults()


class ChatTemplate:
    """A compiled template and the tokenizer that reads its output. Threads may share it.

    `dialect` is the model's, and stands in for what the template cannot show; `marks` are its
    delimiters in this vocabulary.
    """

    def __init__(
        self,
        source: str | None,
        tokenizer: Tokenizer,
        dialect: Dialect | None = None,
        defaults: Defaults = _NO_DEFAULTS,
    ) -> None:
        """`source` None falls back to the dialect's template, then to ChatML if the vocabulary
        knows it, else `render` refuses. `dialect` None is the one that fits.

        Raises StartupError when the source does not compile.
        """
        self.dialect = dialect or registry.choose(source, tokenizer.control_tokens, None)
        self.marks = Marks(self.dialect.spellings, tokenizer.control_tokens)
        if source is None:
            source = self.dialect.template
        if source is None and "<|im_start|>" in tokenizer.control_tokens:
            source = _CHATML
        self._tokenizer = tokenizer
        self._source = source or ""
        self._markup = Spellings(
            content
            for content, number in tokenizer.control_tokens.items()
            if number not in tokenizer.special_ids
        )
        self._reported = False
        try:
            self._template = None if source is None else compile_template(source)
        except (jinja2.TemplateError, RecursionError) as error:
            line = f"line {error.lineno}: " if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise StartupError(f"the chat template does not compile: {line}{error}") from None
        self._efforts = Efforts(source or "", self._try_options, defaults)

    @classmethod
    def load(
        cls,
        path: Path,
        tokenizer: Tokenizer,
        dialect_name: str | None = None,
        defaults: Defaults = _NO_DEFAULTS,
    ) -> ChatTemplate:
        """Read the template of a Hugging Face folder or a GGUF file. Raises StartupError."""
        source = template_source(path)
        dialect = registry.choose(source, tokenizer.control_tokens, dialect_name)
        return cls(source, tokenizer, dialect, defaults)

    @cached_property
    def abilities(self) -> Abilities:
        """What the template can show."""
        return probe(self._try)

    @property
    def knows_thoughts(self) -> bool:
        """Whether the model may think, so that the delimiters of thoughts are none of its text."""
        parser = self.dialect.parser
        if self.dialect.compose is not None:
            return True
        delimiters = [one for one in (parser.think_open, parser.think_close) if one is not None]
        return any(one in self.marks.tokens or one in self._source for one in delimiters)

    @property
    def controls(self) -> Controls:
        """What the template does about thinking."""
        return self._efforts.controls

    def applied(self, conversation: Conversation) -> Applied:
        """How much the model is told to think, and the template's options."""
        return self._efforts.resolve(conversation.thinking, conversation.template_kwargs)

    def render(self, conversation: Conversation) -> Prompt:
        """The prompt. Raises RequestError for what the template cannot express."""
        if self._template is None:
            raise RequestError("the loaded model has no chat template", "messages")
        if not conversation.messages:
            raise RequestError("messages must hold at least one message", "messages")
        _check_continuation(conversation)
        try:
            return self._rendered(conversation)
        except RecursionError:
            raise RequestError(
                "chat_template_kwargs or tools are nested too deeply", "chat_template_kwargs"
            ) from None

    def _rendered(self, conversation: Conversation) -> Prompt:
        kwargs = self.applied(conversation).kwargs
        protection = self._protection(conversation)
        options = cast(Mapping[str, object], protection.guard.value(kwargs))
        refusal: RequestError | None = None
        for abilities in self._attempts(conversation):
            attempt = Attempt(
                self._run,
                conversation,
                abilities,
                self.dialect.rendering,
                options,
                protection,
            )
            try:
                text = attempt.text()
            except RequestError as error:
                refusal = refusal or _without(protection.guard.char, error)
                continue
            if refusal is not None:
                self._report(refusal)
            return self._prompt(conversation, text, attempt.tail(text), protection.guard.char)
        assert refusal is not None
        raise refusal

    def _prompt(self, conversation: Conversation, text: str, tail: str, guard: str) -> Prompt:
        ids = self._tokenizer.encode_rendered(
            text, guard=guard, add_special_tokens=conversation.add_special_tokens
        )
        return Prompt(tuple(ids), self.marks.marked(tail).replace(guard, ""))

    def _attempts(self, conversation: Conversation) -> Iterator[Abilities]:
        """The template's own way, then simpler ones where it fails.

        Templates crash on unusual schemas, and refuse histories as compaction and interruption
        leave them; neither may end a session.
        """
        abilities = self.abilities
        yield abilities
        untold = replace(abilities, tools=False)
        if conversation.tools and abilities.tools:
            yield replace(abilities, simple_schemas=True)
            yield untold
        if abilities.calls and any(_is_tool_use(message) for message in conversation.messages):
            yield replace(untold, calls=False)

    def _report(self, refusal: RequestError) -> None:
        """Once, and without the client's text, which templates put into their messages."""
        if not self._reported:
            self._reported = True
            log.warning("the chat template fails with some tools or calls: shown more simply")
            log.debug("the chat template said: %s", refusal.message)

    def _protection(self, conversation: Conversation) -> Protection:
        texts = [*_texts(conversation), *strings(conversation.template_kwargs)]
        char, mark = unused_characters(texts, 2)
        return Protection(Guard(char, self._tokenizer.spellings, self._markup), mark)

    # Running the template

    def _try(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> str | None:
        try:
            return self._run(messages, tools, options or {}, False)
        except RequestError:
            return None

    def _try_options(self, options: Mapping[str, object]) -> str | None:
        if self._template is None:
            return None
        content: object = "probe"
        if self.abilities.parts:
            content = [{"type": "text", "text": "probe"}]
        try:
            return self._run([{"role": "user", "content": content}], None, options, True)
        except RequestError:
            return None

    def _run(
        self,
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]] | None,
        options: Mapping[str, object],
        add_generation_prompt: bool,
    ) -> str:
        """Render; every failure is the client's to see, since other messages may well render."""
        assert self._template is not None
        context = {"tools": None, "documents": None, **options}
        if tools is not None:
            context["tools"] = tools
        context |= {
            **self._tokenizer.special_tokens,
            "messages": messages,
            "add_generation_prompt": add_generation_prompt,
        }
        try:
            return render_template(self._template, context)
        except TemplateRefusal as refusal:
            message = str(refusal)
        except Exception as error:  # a template is a program: it can fail in every way
            message = f"the chat template cannot render these messages: {_reason(error)}"
        raise RequestError(message, "messages")


def _texts(conversation: Conversation) -> Iterator[str]:
    """Every text of the client, but for the options."""
    for message in conversation.messages:
        yield message.name or ""
        for part in message.parts:
            match part:
                case Text() | Reasoning():
                    yield part.text
                case ToolCall():
                    yield from (part.id, part.name, part.arguments)
                case ToolResult():
                    yield from (part.call_id, part.name or "", *part.texts)
    for tool in conversation.tools:
        yield from (tool.name, tool.description, tool.format.source if tool.format else "")
        yield from strings(tool.parameters)


def _is_tool_use(message: Message) -> bool:
    return any(isinstance(part, ToolCall | ToolResult) for part in message.parts)


def _without(guard: str, error: RequestError) -> RequestError:
    return RequestError(error.message.replace(guard, ""), error.param)


def _check_continuation(conversation: Conversation) -> None:
    if not conversation.continue_final:
        return
    last, param = conversation.messages[-1], conversation.continue_param
    reason = None
    if conversation.add_generation_prompt:
        reason = "the last message cannot be continued and add_generation_prompt be true"
    elif last.role not in ("user", "assistant"):
        reason = "only a last message of the assistant or the user can be continued"
    elif _is_tool_use(last):
        reason = "a last message with tool calls or results cannot be continued"
    if reason is not None:
        raise RequestError(f"{param}: {reason}", param)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it recurses too deeply"
    if isinstance(error, MemoryError):
        return "it needs too much memory"
    return f"{type(error).__name__}: {error}"
