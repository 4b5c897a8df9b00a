"""Patches as Codex's apply_patch takes them: how a model is made to write them, and a judge."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import lark

GRAMMAR = r"""start: opening file_change+ closing
opening: "*** Begin Patch" LF
closing: "*** End Patch" LF?

file_change: creation | removal | revision
creation: "*** Add File: " path LF new_line+
removal: "*** Delete File: " path LF
revision: "*** Update File: " path LF renaming? edits?

path: /(.+)/
new_line: "+" /(.*)/ LF -> text

renaming: "*** Move to: " path LF
edits: (place | edit)+ at_end?
place: ("@@" | "@@ " /(.+)/) LF
edit: ("+" | "-" | " ") /(.*)/ LF
at_end: "*** End of File" LF

%import common.LF
"""
_EXAMPLE = """*** Begin Patch
*** Update File: a.py
@@
-x = 1
+x = 2
*** End Patch
"""
_EDITS = """*** Begin Patch
*** Add File: a b
+one
+
*** Delete File: c
*** Update File: d
*** Move to: e
@@ def f():
 same

-old
+new
*** End of File
*** End Patch"""
SAMPLES = {
    _EXAMPLE: True,
    _EDITS.replace("\n\n", "\n \n"): True,
    _EXAMPLE.replace("@@\n", ""): True,
    "*** Begin Patch\n*** Update File: a\n*** End Patch\n": True,
    _EDITS: False,  # an empty line has no sign
    f"{_EXAMPLE}\n": False,
    _EXAMPLE.replace("@@", "@"): False,
    _EXAMPLE.replace("Update", "Delete"): False,
    "*** Begin Patch\n*** Add File: a\n*** End Patch\n": False,
    "*** Begin Patch\n*** End Patch\n": False,
    _EXAMPLE.removesuffix("*** End Patch\n"): False,
}
"""Texts, and whether they are patches."""
_TASKS = (
    "Delete the file {}.",
    "Add a file {} with one line.",
    "In {}, change the line that says {}.",
    "Rename {} to old.",
    "Delete {} and add nothing.",
)
_NAMES = ("main.py", "notes.md", "über.txt", "src/lib/a b.rs", "Makefile", "x", "data.json")
_SAMPLING = (0.0, 0.7, 1.0, 1.5)


def request(grammar: str, number: int, tokens: int) -> dict[str, Any]:
    """A body of Responses that makes the model write a patch of up to so many tokens."""
    task = _TASKS[number % len(_TASKS)].replace("{}", _NAMES[number % len(_NAMES)])
    tool = {
        "type": "custom",
        "name": "apply_patch",
        "description": "Changes files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": grammar},
    }
    return {
        "input": f"A patch is:\n{_EXAMPLE}\n{task}",
        "tools": [tool],
        "tool_choice": {"type": "custom", "name": "apply_patch"},
        "parallel_tool_calls": False,
        "max_output_tokens": tokens,
        "temperature": _SAMPLING[number % len(_SAMPLING)],
        "seed": number,
        "store": False,
    }


def complete(answer: dict[str, Any]) -> str | None:
    """The patch of an answer, None where the limit has cut it."""
    (call,) = answer["output"]
    assert (call["type"], call["name"]) == ("custom_tool_call", "apply_patch"), call
    assert answer["status"] == call["status"], answer
    return str(call["input"]) if answer["status"] == "completed" else None


def kinds(patch: str) -> Iterator[str]:
    """What a patch does, file by file."""
    return (found[1] for found in re.finditer(r"^\*\*\* (\w+ File|Move to): ", patch, re.MULTILINE))


class Judge:
    """An Earley parser for a grammar of patches."""

    def __init__(self, grammar: str) -> None:
        # It knows no terminal that can be empty: what may be empty is one that may be missing.
        self._parser = lark.Lark(grammar.replace("/(.*)/", "/(.+)/?"), parser="earley")

    def accepts(self, text: str) -> bool:
        try:
            self._parser.parse(text)
        except lark.UnexpectedInput:
            return False
        return True
