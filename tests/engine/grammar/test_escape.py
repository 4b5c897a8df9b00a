"""Formats of custom tools inside JSON strings: the same texts, each in one spelling."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from engine.grammar.builder import pattern
from engine.grammar.compile import inline_checked, lark
from engine.grammar.document import Refused
from engine.grammar.lark import checked
from engine.grammar.quoted_lark import quoted_lark
from engine.grammar.quoting import quoted
from engine.grammar.regexes import parse
from tests.engine.grammar.drive import accepts, walk

# The grammar that Codex sends with its tool `apply_patch`
PATCH = """start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
"""
WALKS = settings(
    max_examples=150, deadline=None, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def in_string(expression: str) -> str:
    return lark(f'start: "\\"" body "\\""\nbody: {quoted(parse(expression))}')


def spelt(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize(
    ("expression", "good", "bad"),
    [
        ("(.+)", ["a", 'é"\\', "\t\x01😀"], ["", "a\nb"]),
        ("a\nb|c", ["a\nb", "c"], ["anb", "a"]),
        (r'[^"]*', ["", "a\\b\n"], ['"']),
        (r"\s+x", ["\n\t x"], ["x"]),
        ('(?i)ab\n|"c', ["AB\n", '"C'], ["AB"]),
        ('[\n"]{2}', ['\n"', '""'], ["\n", "a"]),
        ("^a$", ["a"], ["b"]),
        (r'"([^"\\]|\\.)*"', ['"a\\"b"', '""'], ['"', '"\\"']),
        ("[]a-c^-]+", ["]-^b"], ["d"]),
        ("(?s:.)*end", ["a\nend", "endend"], ["en"]),
        (r"[[:punct:]\x41\u{42}]+", ['"\\A', "B"], ["a"]),
        (r"\p{L}\D", ["é\n", 'x"'], ["1x"]),
        ("x(?P<n>\n){0,2}?y", ["xy", "x\n\ny"], ["x\n\n\ny"]),
        ("a/b\\/c\n", ["a/b/c\n"], ["a"]),
    ],
)
def test_an_expression_is_matched_by_the_same_texts(
    expression: str, good: list[str], bad: list[str]
) -> None:
    made = in_string(expression)
    assert all(accepts(made, spelt(text)) for text in good)
    assert not any(accepts(made, spelt(text)) for text in bad)


@pytest.mark.parametrize("expression", ["x+", "[x-z]{3}", "(a|b)*c", r"\d+"])
def test_what_holds_nothing_to_escape_stays_one_lexeme(expression: str) -> None:
    assert quoted(parse(expression)).startswith("/")


@pytest.mark.parametrize(
    ("expression", "named"),
    [("(?=a)b", "(?="), (r"(a)\1", r"'\1'"), (r"\bx", r"'\b'"), ("a^b", "'^' inside"),
     ("(a$)", "'$' inside"), ("[a&&b]", "'&&'"), ("[[a]]", "another"), ("[a", "not closed"),
     ("(a", "not closed"), ("a)", "')'"), ("*a", "nothing to repeat"), ("{2}", "nothing to repeat"),
     (r"\p{Greek}", r"'\p'"), ("a\\", "backslash"), (r"\u{d800}", "surrogate"),
     ("(?x: a)", "(?x"), ("a(?i)b", "behind"), ("[z-a]", "range"), ("(" * 80, "deep")],
)  # fmt: skip
def test_an_expression_that_cannot_be_rewritten_is_refused_by_name(
    expression: str, named: str
) -> None:
    with pytest.raises(Refused) as caught:
        parse(expression)
    assert named in str(caught.value)


def expressions() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(
        ("a", "b", "\\n", '"', r"\\", ".", "[^a]", '[a-c"\\n]', r"\s", r"\w", r"\d", "é", "(?s:.)")
    )
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
            st.tuples(inner, st.sampled_from(("*", "+", "?", "{2}", "{1,3}"))).map(
                lambda pair: f"(?:{pair[0]}){pair[1]}"
            ),
        ),
        max_leaves=6,
    )


@seed(1)
@WALKS
@given(expressions())
def test_random_expressions_mean_the_same_in_both_forms(expression: str) -> None:
    plain = lark(f"start: {pattern(expression)}")
    made = in_string(expression)
    for number in range(2):
        text = json.loads(walk(made, number, budget=20))
        assert accepts(plain, text), text
        text = walk(plain, number, budget=20)
        assert accepts(made, spelt(text)), text


def lark_in_string(source: str) -> str:
    inner = {"name": "inner", "lark_grammar": quoted_lark(checked(source, inline_checked))}
    start = {"lark_grammar": 'start: "\\"" @inner "\\""'}
    return json.dumps({"grammars": [start, inner]})


def test_codex_patches_are_enforced_inside_a_string() -> None:
    made = lark_in_string(PATCH)
    patch = (
        '*** Begin Patch\n*** Add File: a.py\n+print("hi\\n")\n+\n'
        "*** Update File: b\té\n*** Move to: c\n@@ def f():\n-\told\n+new\n"
        "*** End of File\n*** Delete File: d\n*** End Patch"
    )
    assert accepts(made, spelt(patch))
    assert accepts(made, spelt(patch + "\n"))
    for wrong in (patch[1:], patch + "\n\n", patch.replace("-\told", "?old"), "x" + patch):
        assert not accepts(made, spelt(wrong))


@pytest.mark.parametrize("number", range(10))
def test_random_patches_are_patches(number: int) -> None:
    text = json.loads(walk(lark_in_string(PATCH), number, 60, "\\n*** End Patch"))
    assert accepts(lark(PATCH), text), text


TERMS = r"""
// A comment with "quotes"
?start: _item+ | NUMBER "," [ WORD ] # another
_item: key ":" SEP (value | "\"" QUOTED "\"") "é"~2..3 LF
!key: "A".."C" | /k\/[^\/]/i
value[lazy]: /[a-z]*;/
SEP: "\t" | WS_INLINE
QUOTED: (/[^"]/ | "\\" /./)+
%import common (WS_INLINE, NUMBER)
%import common.WORD
%import common.NEWLINE -> LF
"""


def test_other_grammars_mean_the_same() -> None:
    made, plain = lark_in_string(TERMS), lark(TERMS)
    texts = {
        'A:\tabc;éé\n': True, 'k/":\t"x\ny"ééé\r\n\n': True, "K/\\: \t;éé\nB: ;éé\n": True,
        "1.5,": True, "7,word": True, "A:abc;éé\n": False, 'D:\t;éé\n': False, "1,2": False,
    }  # fmt: skip
    for text, is_one in texts.items():
        assert accepts(plain, text) is is_one, text
        assert accepts(made, spelt(text)) is is_one, text


def test_what_a_grammar_ignores_is_ignored_inside_a_string_too() -> None:
    made = lark_in_string('start: "a" "b"\nWS: /[ \\n]+/\n%ignore WS\n%ignore /#\\r?/ | "\\t"')
    for text in ("ab", "a \nb", "a\t \n \tb", "a#\rb"):
        assert accepts(made, spelt(text)), text
    assert not accepts(made, spelt("axb"))


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ('start: A\nA: /./ & "b"', "'&' or '~' in 'A'"),
        ("start: ~/a./", "'~'"),
        ("start: 'a'", "cannot be enforced"),
        ('start: %regex {"substring_words": "a"}', "cannot be enforced"),
        ("start: /./m", "flag 'm'"),
        ('start: "ab".."c"', "range"),
        ('start: "\\q"', "cannot be read"),
        ("start: quoted_0\nquoted_0: /./\nA: /./", "quoted_"),
        ('start: "a"\nA: "b" /./\n%ignore A', "'%ignore'"),
        ('start: "a"\n%ignore /#[^\\n]*/', "'%ignore'"),
    ],
)
def test_grammars_that_cannot_be_rewritten_are_refused_by_name(source: str, named: str) -> None:
    with pytest.raises(Refused) as caught:
        quoted_lark(source)
    assert named in str(caught.value)
