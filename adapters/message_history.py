"""What a body of Messages says happened so far, as the messages and tools of a conversation."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.decode import given, optional
from adapters.message_tools import MessageTools
from adapters.seal import Seal
from engine.conversation import (
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from engine.errors import RequestError
from generated.messages import (
    CompactionBlock,
    DocumentBlock,
    HostedBlock,
    InputRedactedThinking,
    InputText,
    InputThinking,
    InputToolUse,
    PlainTextSource,
    PromptFields,
    SearchResultBlock,
    SystemTurn,
    ToolAdditionBlock,
    ToolInline,
    ToolReferenceBlock,
    ToolRemovalBlock,
    ToolResultBlock,
    UserTurn,
)

log = logging.getLogger("heliograph.api")

_BILLING = "x-anthropic-billing-header:"
_ONLY_ASSISTANT = (InputToolUse, InputThinking, InputRedactedThinking)


@dataclass(frozen=True, slots=True)
class History:
    """The conversation of a body.

    `tools` are those that may be called, `removed` the names of those that the conversation took
    away again. `fixed` are the ids of calls whose results brought definitions of tools.
    `continues`: the last message ends with text of the assistant, which the answer goes on with.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    removed: frozenset[str]
    fixed: frozenset[str]
    continues: bool
    dropped_thoughts: int


def read_history(body: PromptFields, seal: Seal, tenant: str, model: str) -> History:
    """Raises RequestError for what is out of place, naming it."""
    tools = MessageTools(body)
    reader = _Reader(tools, seal, tenant, model)
    said = list(reader.read(body.messages))
    if not said:
        raise RequestError("messages has nothing to answer", "messages")
    messages = [*_system(body), *said]
    if optional(body.cache_control) is not None:
        messages[-1] = replace(messages[-1], keep=True)
    return History(
        messages=tuple(messages),
        tools=tools.callable(),
        removed=frozenset(tools.removed),
        fixed=frozenset(reader.fixed),
        continues=_continues(messages[-1]),
        dropped_thoughts=reader.dropped_thoughts,
    )


def _continues(last: Message) -> bool:
    ends_with_text = bool(last.parts) and isinstance(last.parts[-1], Text)
    calls = any(isinstance(part, ToolCall) for part in last.parts)
    return last.role == "assistant" and ends_with_text and not calls


def _system(body: PromptFields) -> Iterator[Message]:
    """The leading system text, without what Claude Code changes in it with every request."""
    system: str | list[InputText] = given(body.system, "")
    if isinstance(system, str):
        texts, keep = [system], False
    else:
        blocks = system[1:] if system and system[0].text.startswith(_BILLING) else system
        texts, keep = [block.text for block in blocks], any(map(_is_kept, blocks))
    if any(texts):
        yield Message("system", tuple(Text(text) for text in texts if text), keep=keep)


def _is_kept(block: Any) -> bool:
    """Whether a block is marked, or one within it."""
    if optional(getattr(block, "cache_control", None)) is not None:
        return True
    source = block.source if isinstance(block, DocumentBlock) else block
    inner = getattr(source, "content", None)
    return isinstance(inner, list) and any(map(_is_kept, inner))


@dataclass
class _Reader:
    """Turns the messages of a body, in their order, into those of a conversation."""

    tools: MessageTools
    seal: Seal
    tenant: str
    model: str
    fixed: set[str] = field(default_factory=set)
    dropped_thoughts: int = 0
    _hosted: set[str] = field(default_factory=set)

    def read(self, turns: Sequence[Any]) -> Iterator[Message]:
        last_said = max((i for i, turn in enumerate(turns) if _says(turn)), default=-1)
        for place, turn in enumerate(turns):
            if isinstance(turn, SystemTurn):
                passing = optional(turn.clear_at) == "next_user_message"
                if passing and place < last_said:
                    continue
            yield from self._message(turn, f"messages[{place}]")
        if self._hosted:
            kinds = ", ".join(sorted(self._hosted))
            log.info("left out of the prompt, since other servers' tools made them: %s", kinds)

    def _message(self, turn: Any, param: str) -> Iterator[Message]:
        """One message, or several where results and text alternate."""
        content: Any = given(turn.content, "")
        if isinstance(content, str):
            if content or turn.role == "user":
                yield Message(turn.role, (Text(content),))
            return
        made: list[tuple[bool, list[Part]]] = []  # runs of results, and of everything else
        for place, block in enumerate(content):
            self._check(block, turn.role, f"{param}.content[{place}]")
            for part in self._parts(block, f"{param}.content[{place}]"):
                is_result = isinstance(part, ToolResult)
                if not made or made[-1][0] != is_result:
                    made.append((is_result, []))
                made[-1][1].append(part)
        keep = any(map(_is_kept, content))
        for place, (is_result, parts) in enumerate(made, 1):
            role: Role = "tool" if is_result else turn.role
            yield from _split(role, parts, keep and place == len(made))

    def _check(self, block: Any, role: str, param: str) -> None:
        wrong = isinstance(block, _ONLY_ASSISTANT) if role != "assistant" else _is_of_user(block)
        if wrong:
            other = "an assistant" if role != "assistant" else "a user"
            raise RequestError(f"{param}: a {block.type} block belongs into {other} message", param)

    def _parts(self, block: Any, param: str) -> Iterator[Part]:
        match block:
            case InputThinking() | InputRedactedThinking():
                if thought := self._thought(block, param):
                    yield Reasoning(thought)
            case InputToolUse():
                arguments = json.dumps(block.input, ensure_ascii=False)
                yield ToolCall(block.id, block.name, arguments)
            case ToolResultBlock():
                yield self._result(block, param)
            case HostedBlock():
                self._hosted.add(block.type)
            case _:
                yield Text(self._text(block, param))

    def _text(self, block: Any, param: str) -> str:
        match block:
            case ToolReferenceBlock():
                return self.tools.find(block.tool_name)
            case ToolAdditionBlock():
                if isinstance(block.tool, ToolInline):
                    return self.tools.define(block.tool.definition, f"{param}.tool")
                return self.tools.find(block.tool.name)
            case ToolRemovalBlock():
                return self.tools.remove(block.tool.name)
            case _:
                return _plain_text(block)

    def _result(self, block: ToolResultBlock, param: str) -> ToolResult:
        content: Any = given(block.content, "")
        if isinstance(content, str):
            texts: tuple[str, ...] = (content,)
        else:
            if any(isinstance(inner, ToolReferenceBlock) for inner in content):
                self.fixed.add(block.tool_use_id)
            texts = tuple(
                self._text(inner, f"{param}.content[{place}]")
                for place, inner in enumerate(content)
            )
        return ToolResult(block.tool_use_id, texts, is_error=given(block.is_error, False))

    def _thought(self, block: InputThinking | InputRedactedThinking, param: str) -> str | None:
        """What the model thought. Raises RequestError for a text that this server did not sign."""
        if isinstance(block, InputRedactedThinking):
            return self._opened(block.data)
        signature: str = given(block.signature, "")
        if not block.thinking:
            return self._opened(signature) if signature else None
        if self.seal.check(signature, block.thinking, self.tenant, self.model) == "broken":
            path = f"{param}.signature"
            raise RequestError(f"`{path}` does not fit the text of the thinking block", path)
        return block.thinking

    def _opened(self, content: str) -> str | None:
        text = self.seal.unseal(content, self.tenant, self.model)
        self.dropped_thoughts += text is None
        return text


def _says(turn: Any) -> bool:
    """Whether the user says something, and not only tools do."""
    if not isinstance(turn, UserTurn):
        return False
    if isinstance(turn.content, str):
        return True
    return any(not isinstance(block, ToolResultBlock) for block in turn.content)


def _is_of_user(block: Any) -> bool:
    return isinstance(block, ToolResultBlock)


def _split(role: Role, parts: Iterable[Part], keep: bool) -> Iterator[Message]:
    """Results are messages of their own."""
    if role != "tool":
        yield Message(role, tuple(parts), keep=keep)
        return
    results = list(parts)
    for place, part in enumerate(results, 1):
        yield Message("tool", (part,), keep=keep and place == len(results))


def _plain_text(block: Any) -> str:
    match block:
        case InputText():
            return block.text
        case CompactionBlock():
            return given(block.content, "")
        case SearchResultBlock():
            texts = [inner.text for inner in block.content]
            return "\n\n".join([f"Search result: {block.title} ({block.source})", *texts])
        case DocumentBlock():
            return _document(block)
    raise TypeError(f"no text of {block!r}")


def _document(block: DocumentBlock) -> str:
    source = block.source
    if isinstance(source, PlainTextSource):
        texts = [source.data]
    elif isinstance(source.content, str):
        texts = [source.content]
    else:
        texts = [inner.text for inner in source.content]
    title, context = given(block.title, ""), given(block.context, "")
    head = f"Document: {title}" if title else "Document"
    return "\n\n".join(filter(None, [head, context, *texts]))
