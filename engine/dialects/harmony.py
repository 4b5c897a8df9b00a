"""gpt-oss: messages with a header each, `<|start|>assistant<|channel|>final<|message|>...<|end|>`.

`analysis` is a thought, `final` the answer, `commentary` text beside calls; a message `to=` someone
is a call, and the recipient may stand in the role's or in the channel's part of the header. Source:
docs/format.md of openai/harmony.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import regex

from engine.conversation import Tool, ToolCall
from engine.dialects.dialect import Dialect, Rendering
from engine.dialects.json_call import arguments, begun_arguments, whole_arguments
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import (
    WAIT,
    Arguments,
    Closed,
    Incomplete,
    Malformed,
    Opened,
    Said,
    Steps,
)
from engine.dialects.tool_text import show_results, signatures
from engine.events import Channel
from engine.grammar.builder import pattern
from engine.grammar.form import Composition
from engine.grammar.rules import Rules

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
CONSTRAIN, CALL, RETURN, END = "<|constrain|>", "<|call|>", "<|return|>", "<|end|>"
FUNCTIONS = "functions."
_STRUCTURE = (START, CHANNEL, MESSAGE, CONSTRAIN, CALL, RETURN, END)
_LONGEST_TYPE = 64  # characters before `<|message|>` that are a content type, and no text
_BUILT_IN = regex.compile(r"(?:python|browser)(?:\.\w+)?")  # tools of the model's training
_TO = r" to=functions\."  # one lexeme, so that text cannot begin like it
_PEOPLE = ("assistant", "user", "system", "developer", "all")
# What comes behind a delimiter in a header.
_WORDS = {
    "start": r"\s*+(?:assistant|[\w.-]+(?=[^\w.-]))",
    "channel": r"\s*+(?:analysis|commentary|final)",
    "constrain": r"\s*+[\w/.-]+(?=[^\w/.-])",
}


@dataclass(slots=True)
class Header:
    """What a header has said so far. `word`: the delimiter that was last; `is_whole`: no more."""

    channel: str = ""
    recipient: str = ""
    word: str = ""
    is_whole: bool = False

    def address(self, recipient: str) -> None:
        """Note whom the message is for; people read it anyway."""
        if recipient not in _PEOPLE:
            self.recipient = recipient


class HarmonyParser(OutputParser):
    """Headers are read leniently: models double them, garble them and forget their parts."""

    think_open = None
    think_close = None

    def run(self) -> Steps[None]:
        self._last: Channel | None = None  # what the message before this one said
        header = self._left_open()
        while not self.reader.is_over:
            yield from self._header(header)
            if header.is_whole:
                yield from self._message(header)
            header = Header(header.channel)

    def starts_thinking(self) -> bool:
        header = self._left_open()
        return header.is_whole and header.channel == "analysis"

    def _left_open(self) -> Header:
        """The header that the prompt began."""
        begun = self.expected.tail.rpartition(self.marks[START])[2]
        before, opened, _ = begun.partition(self.marks[MESSAGE])
        header = Header(is_whole=bool(opened))
        channel = rf"(?:{self.marks.re(CHANNEL)}){_WORDS['channel']}"
        for found in regex.finditer(channel, before):
            header.channel = found[0].removeprefix(self.marks[CHANNEL]).strip()
        for found in regex.finditer(self._recipient(), before):
            header.address(found["to"])
        if before.endswith(self.marks[CHANNEL]):
            header.word = "channel"
        return header

    # Headers

    def _header(self, header: Header) -> Steps[None]:
        """Read up to where the message begins, or to the end of the output."""
        reader = self.reader
        tokens = {"start": START, "channel": CHANNEL, "message": MESSAGE, "constrain": CONSTRAIN}
        parts = [f"(?P<{kind}>{self.marks.re(token)})" for kind, token in tokens.items()]
        parts += [f"(?P<end>{self.marks.re(END, CALL, RETURN)})", rf"\s*+{self._recipient()}"]
        while not header.is_whole and not reader.is_over:
            if header.word:
                word = yield from reader.take(_WORDS[header.word])
                if word is not None and header.word == "channel":
                    header.channel = word.strip()
                header.word = ""
            part = yield from reader.look("|".join(parts))
            if part is None:
                header.is_whole = yield from self._is_message(header)
                continue
            reader.consume(part.end(), Channel.MARKUP)
            kind = part.lastgroup
            if kind in ("start", "end"):
                header.channel = header.recipient = ""
            if kind == "to":
                header.address(part["to"])
            header.word = kind if kind in _WORDS else ""
            header.is_whole = kind == "message"

    def _recipient(self) -> str:
        """Whom a message is for; what follows shows that the name is whole."""
        before_token = "" if START in self.marks.tokens else "<"
        name = rf"[^\s\ud800-\udfff{before_token}]{{1,256}}"
        return rf"to=(?P<to>(?:functions\.)?(?:{name}))(?=[\s\ud800-\udfff{before_token}])"

    def _is_message(self, header: Header) -> Steps[bool]:
        """Whether text that has no place in a header is the message; consumes what is not."""
        reader = self.reader
        while True:
            at, stop, found = reader.first([self.delimiter("token", *_STRUCTURE)])
            text = reader.text[reader.at : at]
            is_short = len(text) <= _LONGEST_TYPE
            if stop is not None and found is not None and not found.partial:
                is_header = is_short and found[0] == self.marks[MESSAGE]
                break
            if not is_short or reader.ended:
                is_header = regex.fullmatch(r"\s*+to=\S*", text) is not None or (
                    reader.cut and regex.fullmatch(r"\s*+[\w/.-]*", text) is not None
                )
                break
            yield WAIT
        if not is_header and regex.search(r"\w", text):
            return True
        recipient = regex.search(r"\bto=(\S+)", text)
        if recipient is not None:
            header.address(recipient[1])
        reader.consume(at, Channel.MARKUP)
        return False

    # Messages

    def _message(self, header: Header) -> Steps[None]:
        channel = Channel.REASONING if header.channel == "analysis" else Channel.TEXT
        if header.recipient and self.expected.tools is not None:
            self._called = header.recipient.removeprefix(FUNCTIONS)
            here = yield from self.reader.match("")
            assert here is not None
            if (yield from self.try_call(here)):
                self._last = None
                return
            channel = Channel.TEXT
            if _BUILT_IN.fullmatch(header.recipient) and self.tool(self._called) is None:
                channel = Channel.CALL  # nobody offered it, and its code is for nobody
        is_answer = header.channel in ("", "final")
        yield from self._text(channel, verbatim=is_answer and self.expected.verbatim)

    def _text(self, channel: Channel, *, verbatim: bool) -> Steps[None]:
        """Say a message as it is; a blank line comes between two that are one text."""
        reader = self.reader
        before = "\n\n" if self._last is channel else ""
        stops = [] if verbatim else [self.delimiter("token", *_STRUCTURE)]
        while True:
            at, stop, found = reader.first(stops)
            text = self.marks.plain(reader.consume(at, channel))
            if text and channel is not Channel.CALL:
                yield Said(channel, before + text)
                before, self._last = "", channel
            if reader.ended or (stop is not None and found is not None and not found.partial):
                return
            yield WAIT

    def call(self, head: regex.Match[str]) -> Steps[None]:
        """Read the message to a tool; without a delimiter it ends where the output ends."""
        reader, name = self.reader, self._called
        tool = self.tool(name)
        if tool is not None and tool.format is not None:
            yield Opened(name)
            yield from self._free_text(tool)
            yield Closed()
            return
        yield from reader.skip_space()
        if reader.is_over and reader.cut:
            raise Incomplete
        yield Opened(name)
        if reader.is_over or (yield from reader.look(self.marks.re(*_STRUCTURE))) is not None:
            yield Arguments("{}")
        else:
            yield from arguments(self, name)
        yield Closed()

    def _free_text(self, tool: Tool) -> Steps[None]:
        """The text for a custom tool, or the object that holds it."""
        reader = self.reader
        waiting: str | None = ""  # what may be an object
        is_object = False
        while True:
            at, stop, found = reader.first([self.delimiter("token", *_STRUCTURE)])
            text = self.marks.plain(reader.consume(at, Channel.CALL))
            if waiting is not None:
                waiting += text
                text = ""
                is_object = is_object or waiting.lstrip().startswith("{")
                if not is_object and waiting.strip():
                    text, waiting = waiting, None
            if text:
                yield Arguments(text)
            if reader.ended or (stop is not None and found is not None and not found.partial):
                break
            yield WAIT
        if waiting:
            try:
                yield whole_arguments(tool, waiting)
            except Malformed:
                cut = reader.is_over and reader.cut
                yield begun_arguments(tool, waiting) if cut else Arguments(waiting)
        if reader.is_over and reader.cut:
            raise Incomplete


def grammar(rules: Rules) -> str:
    """What follows `<|start|>assistant` for a call: there is one, which ends the turn."""
    kind = f"({rules.text(' ')}? {rules.mark(CONSTRAIN)} {rules.text('json')})?"
    to, commentary = pattern(_TO), rules.text("commentary")

    def call(name: str, arguments: str) -> str:
        channel = f"{rules.mark(CHANNEL)} {commentary}"
        header = rules.rule(f"{to} {name} {channel} | {channel} {to} {name}")
        return rules.rule(f"{header} {kind} {rules.mark(MESSAGE)} {arguments}")

    calls = [call(rules.text(tool.name), rules.arguments(tool)) for tool in rules.tools]
    if rules.open_names:
        calls.append(call(rules.name(), rules.arguments(None)))
    return rules.rule(" | ".join(calls))


def _compose(parts: Composition) -> str | None:
    """Thoughts and text beside calls, then a call or the answer; headers are as documented.

    A message that the prompt began may go on without one.
    """
    rules, loose = parts.rules, parts.loose()
    if parts.calls is None and parts.body is None and not parts.form.tools:
        return None
    following = f"{rules.mark(END)} {rules.mark(START)} {rules.text('assistant')}"
    channels = f"{rules.text('analysis')} | {rules.text('commentary')}"
    message = f"{rules.mark(CHANNEL)} ({channels}) {rules.mark(MESSAGE)} {loose} {following}"
    last = [parts.calls] if parts.calls is not None else []
    if not parts.form.must_call:
        final = f"{rules.mark(CHANNEL)} {rules.text('final')} {rules.mark(MESSAGE)}"
        last.append(f"{final} {parts.body or loose}")
    whole = rules.rule(f"({message})* ({' | '.join(last)})")
    if parts.form.in_thought:
        return rules.rule(f"{loose} {following} {whole}")
    if parts.body is not None or parts.form.must_call:
        return whole
    text = rules.terminal(f"{pattern('(?s:.+)')} & ~{pattern(f'{_TO}(?s:.*)')}")
    return rules.rule(f"{whole} | {text} {loose}")


def _tools(tools: Sequence[Tool]) -> str:
    return (
        f"# Tools\n\n## functions\n\n{signatures(tools)}\n\n"
        "Call these functions on the commentary channel."
    )


def _calls(calls: Sequence[ToolCall]) -> str:
    return f"{CALL}{START}assistant".join(
        f" to={FUNCTIONS}{call.name}{CHANNEL}commentary {CONSTRAIN}json{MESSAGE}{call.arguments}"
        for call in calls
    )


def _fits(template: str, control_tokens: Container[str]) -> bool:
    return CHANNEL in template and MESSAGE in template


HARMONY = Dialect(
    name="harmony",
    parser=HarmonyParser,
    spellings=_STRUCTURE,
    grammar=grammar,
    rendering=Rendering(_tools, _calls, show_results),
    fits=_fits,
    compose=_compose,
)
