"""A client's Lark grammar, rewritten to describe the same texts inside a JSON string.

What holds characters that JSON escapes becomes a rule, terminals with their names too; see
`engine.grammar.quoting`. The rest stays as it was.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from engine.grammar.builder import pattern
from engine.grammar.document import Refused
from engine.grammar.quoting import is_bounded, is_escaped, one_lexeme, quoted, quoted_text
from engine.grammar.regexes import Choice, Node, Repeat, Sequence, parse, single

# What `%import common.NAME` means where that holds characters that are escaped
_COMMON = {
    "ESCAPED_STRING": r'"([^"\\]|\\.)*"',
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "SQL_COMMENT": r"--[^\n]*",
    "C_COMMENT": r"/\*[^*]*\*+([^/*][^*]*\*+)*/",
}
_WHERE = "cannot be enforced in a call that quotes its text"
_STRING = r'"(?:\\.|[^"\\\n])*"'
_TOKEN = re.compile(
    rf"""
    (?P<skip> [^\S\n]+ | //[^\n]* | \#[^\n]* )
  | (?P<line> \n )
  | (?P<range> {_STRING} \s* \.\. \s* {_STRING} )
  | (?P<string> {_STRING}i? )
  | (?P<regex> /(?:\\.|[^/\\\n])+/[a-z]* )
  | (?P<imports> %import \s+ common \s* (?: \.\w+ (?:\s*->\s*\w+)? | \([\w\s,]*\) ) )
  | (?P<ignore> %ignore\b )
  | (?P<name> \w+ )
  | (?P<combined> & | ~ (?!\s*\d) )
  | (?P<sign> -> | \.\. | [:|()\[\]{{}},*+?!.~=] )
    """,
    re.VERBOSE,
)


@dataclass
class _Statement:
    """A definition, or a directive (without a name): its tokens up to the next one."""

    name: str | None
    tokens: list[tuple[str, str]] = field(default_factory=list)


def quoted_lark(source: str) -> str:
    """The grammar for the escaped texts of a Lark grammar that is checked. Raises Refused."""
    statements = _statements(_tokens(source))
    escaped = _escaped_terminals(statements)
    names = {name: f"quoted_{number}" for number, name in enumerate(sorted(escaped))}
    if any(name in source for name in names.values()):
        raise Refused(
            "a name that begins with 'quoted_' cannot be enforced in a call of this model"
        )
    return "\n".join(_written(statement, statements, names) for statement in statements)


def _tokens(source: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise Refused(f"{source[at : at + 20]!r} {_WHERE}")
        kind = str(match.lastgroup)
        if kind == "imports":
            found += _imports(match[0])
        elif kind != "skip" and not (match[0] in "?!" and _is_start(found)):
            found.append((kind, match[0]))  # what stands before a name is about the tree alone
        at = match.end()
    return found


def _is_start(tokens: list[tuple[str, str]]) -> bool:
    return not tokens or tokens[-1][0] == "line"


def _imports(text: str) -> list[tuple[str, str]]:
    """An import as the definitions it stands for."""
    names = re.findall(r"\w+", text)[2:]
    pairs = [(names[0], names[-1])] if "." in text else [(name, name) for name in names]
    found: list[tuple[str, str]] = []
    for name, alias in pairs:
        if name in _COMMON:
            body = [("name", alias), ("sign", ":"), ("regex", pattern(_COMMON[name]))]
        else:
            body = [("directive", f"%import common.{name} -> {alias}")]
        found += [("line", "\n"), *body, ("line", "\n")]
    return found


def _statements(tokens: list[tuple[str, str]]) -> list[_Statement]:
    found: list[_Statement] = []
    starts = True
    for at, (kind, text) in enumerate(tokens):
        if kind == "line":
            starts = True
            continue
        if starts and kind == "name" and _defines(tokens, at + 1):
            found.append(_Statement(text))
        elif kind in ("directive", "ignore") or not found:
            found.append(_Statement(None))
        starts = False
        found[-1].tokens.append((kind, text))
    return found


def _defines(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether a colon follows, perhaps behind attributes."""
    if tokens[at : at + 1] == [("sign", "[")]:
        while at < len(tokens) and tokens[at] != ("sign", "]"):
            at += 1
        at += 1
    return tokens[at : at + 1] == [("sign", ":")]


def _is_terminal(name: str | None) -> bool:
    return name is not None and name.lstrip("_")[:1].isupper()


def _escaped_terminals(statements: list[_Statement]) -> set[str]:
    """The terminals with characters that are escaped, by themselves or by what they refer to."""
    found: set[str] = set()
    while True:
        more = {
            str(statement.name)
            for statement in statements
            if _is_terminal(statement.name)
            for kind, text in statement.tokens[1:]
            if (text in found if kind == "name" else _has_escapes(kind, text))
        }
        if more <= found:
            return found
        found |= more


def _has_escapes(kind: str, text: str) -> bool:
    return kind in ("string", "regex", "range") and is_escaped(_node(kind, text))


def _node(kind: str, text: str) -> Node:
    """What a literal or an expression of a grammar is made of."""
    if kind == "regex":
        source, _, flags = text[1:].rpartition("/")
        unknown = sorted(set(flags) - set("isu"))
        if unknown:
            raise Refused(f"the flag '{unknown[0]}' of an expression cannot be enforced")
        return parse(re.sub(r"\\(.)", lambda m: "/" if m[1] == "/" else m[0], source), flags)
    if kind == "range":
        low, high = (_value(string) for string in re.findall(_STRING, text))
        if len(low) != 1 or len(high) != 1:
            raise Refused(f"the range {text} cannot be enforced")
        return parse(f"[\\x{{{ord(low):x}}}-\\x{{{ord(high):x}}}]")
    any_case = text.endswith("i")
    letters = [single(char) for char in _value(text.removesuffix("i"))]
    if any_case:
        return Sequence(tuple(parse(f"(?i:{leaf})") for leaf in map(str, letters)))
    return Sequence(tuple(letters))


def _value(string: str) -> str:
    """The characters of a Lark string."""
    inner = re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", string)
    try:
        return str(json.loads(inner, strict=False))
    except ValueError:
        raise Refused(f"the text {string} cannot be read") from None


def _written(statement: _Statement, statements: list[_Statement], names: dict[str, str]) -> str:
    if statement.name is None:
        if statement.tokens[0][0] == "ignore":
            return _ignored(statement, statements, names)
        return " ".join(text for _, text in statement.tokens)
    is_split = statement.name in names
    is_combined = any(kind == "combined" for kind, _ in statement.tokens)
    if is_combined and (is_split or any(_has_escapes(*token) for token in statement.tokens)):
        raise Refused(f"'&' or '~' in '{statement.name}' {_WHERE}")
    keeps = _is_terminal(statement.name) and not is_split
    parts = []
    for kind, text in statement.tokens:
        if kind == "name":
            parts.append(names.get(text, text))
        elif keeps or not _has_escapes(kind, text):
            parts.append(text)
        elif kind == "string" and not is_split and not text.endswith("i"):
            parts.append(quoted_text(_value(text)))
        else:
            parts.append(quoted(_node(kind, text)))
    return " ".join(parts)


def _ignored(statement: _Statement, statements: list[_Statement], names: dict[str, str]) -> str:
    """What is ignored is one lexeme; runs of it are several."""
    bodies: list[tuple[str, str]] = []
    for kind, text in statement.tokens[1:]:
        if kind == "name" and text in names:
            bodies += next(known.tokens[2:] for known in statements if known.name == text)
        else:
            bodies.append((kind, text))
    if not any(_has_escapes(*body) for body in bodies):
        return " ".join(text for _, text in statement.tokens)
    for at, body in enumerate(bodies):
        if body[0] not in ("string", "regex") if at % 2 == 0 else body != ("sign", "|"):
            raise Refused(f"'%ignore' with {body[1]} {_WHERE}")
    parts = [_lexeme(_node(*body)) for body in bodies[::2]]
    return f"%ignore {pattern('|'.join(parts))}"


def _lexeme(node: Node) -> str:
    """An expression of one turn of what is ignored."""
    match node:
        case Choice((inner,)):
            return _lexeme(inner)
        case Repeat(inner, "+" | "*"):
            return _lexeme(inner)
        case _ if is_bounded(node) or not is_escaped(node):
            return one_lexeme(node)
    raise Refused(f"'%ignore' with a run inside an expression {_WHERE}")
