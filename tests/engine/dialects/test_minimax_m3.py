from __future__ import annotations

import pytest

from engine.conversation import CustomFormat, Tool
from engine.dialects.minimax_m3 import MINIMAX_M3
from engine.dialects.pieces import Arguments, Closed, Opened
from tests.engine.dialects.outputs import read, streamed, tool

NS = "]<]minimax[>["
ORDER = {
    "type": "array",
    "items": {"properties": {"sku": {"type": "string"}, "n": {"type": "integer"}}},
}


def spaced(text: str) -> str:
    """With the namespace in front of each tag."""
    return text.replace("<", f"{NS}<")


def section(*invocations: str) -> str:
    return spaced("<tool_call>\n" + "".join(invocations) + "</tool_call>")


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("trusted", [True, False])
def test_nested_elements(tokens: bool, trusted: bool) -> None:
    written = section(
        '<invoke name="order"><id>007</id><n>2</n><items><item><sku>1</sku><n>3</n></item><item>'
        "<sku>b</sku></item></items><opts><unit>C</unit><deep><on>true</on></deep></opts></invoke>\n",
        '<invoke name="now"></invoke>\n',
    )
    known = tool("order", id="string", n="integer", items=ORDER, opts="object")
    output = read(
        MINIMAX_M3, "<mm:think>A plan.</mm:think>Now.\n" + written, known, tool("now"),
        tokens=tokens, trusted=trusted,
    )  # fmt: skip
    items = [{"sku": "1", "n": 3}, {"sku": "b"}]
    opts = {"unit": "C", "deep": {"on": True}}
    assert output.calls == [
        ("order", {"id": "007", "n": 2, "items": items, "opts": opts}),
        ("now", {}),
    ]
    assert (output.thought, output.text) == ("A plan.", "Now.")


def test_lines_between_tags_and_containers_as_json() -> None:
    written = section(
        '<invoke name="f">\n<a>[1, 2]</a>\n<o>{"x": 1}</o>\n<e></e>\n<s></s>\n<n></n>\n</invoke>\n'
    )
    known = tool("f", a="array", o="object", e="array", s="string", n="integer")
    output = read(MINIMAX_M3, written, known)
    assert output.calls == [("f", {"a": [1, 2], "o": {"x": 1}, "e": [], "s": ""})]


def test_elements_of_one_name_are_an_array() -> None:
    written = section('<invoke name="f"><a>x</a><a>y</a><o><b>1</b><b>2</b></o></invoke>\n')
    known = tool("f", a={"type": "array", "items": {"type": "string"}}, o="object")
    assert read(MINIMAX_M3, written, known).calls == [("f", {"a": ["x", "y"], "o": {"b": [1, 2]}})]


def test_an_unknown_tool_and_odd_names() -> None:
    written = section('<invoke name="g"><$top>5</$top><-A>x</-A><l><item>1</item></l></invoke>\n')
    assert read(MINIMAX_M3, written, tool("f")).calls == [("g", {"$top": 5, "-A": "x", "l": [1]})]


def test_tags_without_their_namespace_are_text_unless_they_close_the_element() -> None:
    written = section('<invoke name="w"><c>a</c><p>x</p></invoke>\n')
    quoted = written.replace(">a" + NS, "><b>a</b> </c> <p>")
    known = tool("w", c="string", p="string")
    assert read(MINIMAX_M3, quoted, known).calls == [("w", {"c": "<b>a</b> </c> <p>", "p": "x"})]
    loose = written.replace(f"{NS}</c>", "</c>")
    assert read(MINIMAX_M3, loose, known).calls == [("w", {"c": "a", "p": "x"})]


def test_a_broken_element_makes_its_call_text() -> None:
    whole, broken = '<invoke name="f"><a>1</a></invoke>\n', '<invoke name="f"><o>x<y>1</y></o>'
    output = read(MINIMAX_M3, section(whole, broken), tool("f", a="integer", o="object"))
    assert output.calls == [("f", {"a": 1})]
    assert "<o>x" in output.text


def test_deep_nesting() -> None:
    def written(depth: int) -> str:
        return section(f'<invoke name="f">{"<a>" * depth}x{"</a>" * depth}</invoke>\n')

    assert len(read(MINIMAX_M3, written(60), tool("f"), tokens=True).calls) == 1
    assert read(MINIMAX_M3, written(70), tool("f")).calls == []


def test_the_input_of_a_custom_tool_is_text() -> None:
    custom = Tool("run", format=CustomFormat())
    written = section('<invoke name="run"><input>a <b> "c"\n</input></invoke>\n')
    assert read(MINIMAX_M3, written.replace(f"{NS}<b>", "<b>"), custom).calls == [
        ("run", 'a <b> "c"\n')
    ]


def test_strings_go_out_while_they_come() -> None:
    known = {"w": tool("w", p="string")}
    parts = [
        NS, "<tool_call>\n", NS, '<invoke name="w">', NS, "<p>", "a\n", NS, "</p>", NS,
        "</invoke>\n", NS, "</tool_call>",
    ]  # fmt: skip
    assert streamed(MINIMAX_M3, parts, known) == [
        [], [], [], [Opened("w")], [], [], [Arguments('{"p": "a\\n')], [],
        [Arguments('"')], [], [Arguments("}"), Closed()], [], [],
    ]  # fmt: skip


def test_the_template_tells() -> None:
    assert MINIMAX_M3.fits("{%- set ns_token = ']<]minimax[>[' -%}", ())
