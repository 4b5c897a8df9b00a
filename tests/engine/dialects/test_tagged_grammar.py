"""What masks allow where delimiters are tokens, and that the parser reads it as they meant it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest
import regex
from llguidance import LLMatcher
from tokenizers import AddedToken

from engine.conversation import CustomFormat, Tool, ToolCall
from engine.dialects.dialect import Dialect
from engine.dialects.glm import GLM_45, GLM_47
from engine.dialects.marks import Marks
from engine.dialects.mimo import MIMO
from engine.dialects.minimax import MINIMAX
from engine.dialects.minimax_m3 import MINIMAX_M3
from engine.dialects.pieces import Expected
from engine.dialects.qwen_xml import QWEN_XML
from engine.grammar.mask import Vocabulary
from engine.grammar.rules import Rules
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary import Vocabulary as Loaded
from tests.engine.dialects.outputs import said
from tests.engine.text.vocabularies import byte_level_core

END = "<|im_end|>"
each_dialect = pytest.mark.parametrize(
    "dialect",
    (QWEN_XML, MIMO, GLM_45, GLM_47, MINIMAX, MINIMAX_M3),
    ids=lambda dialect: dialect.name,
)
QUOTED = {
    "qwen_xml": "a </parameter>\n</parameter>\nb\n</parameter>\n</function>\n</tool_call>\nc",
    "mimo": "a </parameter>\n</parameter>\nb</parameter>\n</function>\n</tool_call>\nc",
    "glm45": "a </arg_value>\n</tool_call>\n<arg_key>b",
    "glm47": "a </arg_value></tool_call><arg_key>b",
    "minimax": "a </parameter>\n</parameter>\nb\n</invoke>\n</minimax:tool_call> c",
    "minimax_m3": "a ]<]minimax[>[</content>]<]minimax[>[</invoke>\n b",
}
"""Values that hold the ends of values, spelt out in ordinary tokens."""

PROPERTIES = {"path": {"type": "string"}, "n": {"type": "integer"}, "content": {"type": "string"}}
TOOLS = [
    Tool(
        "write",
        parameters={"type": "object", "properties": PROPERTIES, "required": ["path", "content"]},
    ),
    Tool("now"),
]


def written(dialect: Dialect, text: str, quoted: str) -> Iterator[tuple[str, bool]]:
    """An output in parts, with whether each is one token; what it quotes is none."""
    spellings = sorted(dialect.spellings, key=len, reverse=True)
    tokens = regex.compile(f"({'|'.join(map(regex.escape, spellings))})")
    before, _, after = text.partition(quoted)
    for part in tokens.split(before):
        yield part, part in spellings
    yield quoted, False
    for part in tokens.split(after):
        yield part, part in spellings


def allows(
    dialect: Dialect, tools: Sequence[Tool], enforced: bool, parts: Sequence[tuple[str, bool]]
) -> bool:
    """Whether masks let these tokens through, and the output end behind them."""
    added = tuple(
        AddedToken(text, special=True, normalized=False) for text in (*dialect.spellings, END)
    )
    core = byte_level_core(added)
    ids = core.get_vocab()
    tokenizer = Tokenizer(Loaded(core, (), (), None, (ids[END],), {}))
    names = [tool.name for tool in tools] if enforced else []
    tokens = {text: ids[text] for text in dialect.spellings}
    rules = Rules(tools, open_names=True, tokens=tokens, enforced=names)
    assert dialect.grammar is not None
    grammar = rules.document(dialect.grammar(rules), tokens=True)
    vocabulary = Vocabulary(tokenizer.vocabulary_json, len(ids), tokenizer.eos_ids)
    matcher = LLMatcher(vocabulary.build(), grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    for part, is_token in parts:
        spelt = [token for char in part for token in core.encode(char).ids]
        for token in [ids[part]] if is_token else spelt:
            if not matcher.compute_bitmask()[token // 8] >> token % 8 & 1:
                return False
            assert matcher.consume_token(token)
    return matcher.is_accepting()


@each_dialect
@pytest.mark.parametrize("enforced", [True, False])
@pytest.mark.parametrize("key", ["path", "content"])
def test_a_value_may_hold_what_ends_values(dialect: Dialect, enforced: bool, key: str) -> None:
    quoted = QUOTED[dialect.name]
    arguments = {"path": "x", "n": 5, "content": "y"} | {key: quoted}
    calls = [
        ToolCall("", "write", json.dumps(arguments)),
        ToolCall("", "now", "{}"),
        ToolCall("", "other", '{"k": "v"}'),
    ]
    parts = list(written(dialect, dialect.rendering.calls(calls), quoted))
    assert allows(dialect, TOOLS, enforced, parts)
    marks = Marks(dialect.spellings, {text: n for n, text in enumerate(dialect.spellings)})
    parser = dialect.parser(marks, Expected({tool.name: tool for tool in TOOLS}, trusted=True))
    marked = "".join(marks.marked(part) if is_token else part for part, is_token in parts)
    output = said([piece for char in marked for piece in parser.feed(char)])
    assert output.calls == [("write", arguments), ("now", {}), ("other", {"k": "v"})]


@each_dialect
@pytest.mark.parametrize(
    ("wanted", "good", "bad"),
    [
        (CustomFormat(), 'a "b"\n<c>\n', None),
        (CustomFormat("regex", r"[a-z \n]+!"), "one\ntwo!", "ONE!"),
        (CustomFormat("lark", 'start: "begin" /[a-z\\n]+/ "END"'), "beginab\nEND", "begin"),
    ],
    ids=["text", "regex", "lark"],
)
def test_the_text_of_a_custom_tool(
    dialect: Dialect, wanted: CustomFormat, good: str, bad: str | None
) -> None:
    tool = Tool("run", format=wanted)
    for text, enforced, expected in ((good, True, True), (good, False, True), (bad, True, False)):
        if text is None:
            continue
        call = dialect.rendering.calls([ToolCall("", "run", text, custom=True)])
        assert allows(dialect, [tool], enforced, list(written(dialect, call, text))) is expected
