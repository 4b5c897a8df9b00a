"""One grammar for all that a model says: thoughts, free text, calls and the answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from engine.conversation import Tool
from engine.errors import RequestError
from engine.grammar.arguments import check, is_free, size
from engine.grammar.cache import Cache
from engine.grammar.compile import error_of, grammar_of
from engine.grammar.document import Refused, RefusedTool
from engine.grammar.form import Composition, OutputForm, body_of, expression, is_wanted
from engine.grammar.rules import MAX_ENFORCED_CHARS, Rules

__all__ = ["OutputForm", "OutputGrammar", "output_grammar"]


@dataclass(frozen=True, slots=True)
class OutputGrammar:
    """A grammar as the engine compiles it.

    `trusts_calls`: whatever begins like a call is one, as long as masks are obeyed. What a parser
    takes for a call although the dialect does not write it so is not meant.
    """

    text: str
    trusts_calls: bool


def output_grammar(form: OutputForm) -> OutputGrammar | None:
    """The grammar of an output; None where everything is allowed.

    Raises RequestError, with code `invalid_schema` or `invalid_grammar` and the client's field, for
    what cannot be enforced. Call it before admission, as `grammar_of`.
    """
    if form.must_call and not form.callable:
        raise RequestError(
            "tool_choice asks for a call of tools that are not declared", "tool_choice"
        )
    if not _is_needed(form):
        return None
    tools = [replace(tool, description="") for tool in form.tools]
    form = replace(form, tools=tools)
    try:
        return _GRAMMARS.get(repr(form), lambda: _grammar(form), _size)
    except RecursionError:
        raise RequestError(f"the tools are {_TOO_DEEP}", "tools", "invalid_schema") from None


def _size(made: OutputGrammar | None) -> int:
    return len(made.text) if made is not None else 0


_GRAMMARS = Cache[OutputGrammar | None](8 * 1024 * 1024)  # characters of grammars
_ERRORS = Cache[str](64 * 1024)
_TOO_DEEP = "nested too deeply"


def _grammar(form: OutputForm) -> OutputGrammar | None:
    if form.answer is not None:
        grammar_of(form.answer)  # refuses what is wrong with it, in its own name
    enforced = _enforced(form)
    try:
        try:
            made = _compose(form, enforced)
        except RefusedTool:
            if form.constrain != "declared":
                raise
            enforced &= {tool.name for tool in form.callable if is_wanted(tool)}
            made = _compose(form, enforced)
        error = _error_of(made.checkable) if made is not None else ""
    except RefusedTool as refused:
        raise _refusal(refused.tool, str(refused)) from None
    except Refused as refused:
        made, error = None, str(refused)
    if error:
        raise _blamed(form, enforced, error)
    return OutputGrammar(made.text, _trusts_calls(form)) if made is not None else None


@dataclass(frozen=True, slots=True)
class _Made:
    text: str
    checkable: str


def _is_needed(form: OutputForm) -> bool:
    if form.answer is not None:
        return True
    if not form.tools or form.calls is None:
        return False
    if form.choice.mode == "none":
        return form.has_opener or form.compose is not None
    return form.must_call or form.constrain != "off"


def _compose(form: OutputForm, enforced: Collection[str]) -> _Made | None:
    """Raises Refused."""
    try:
        return _composed(form, enforced)
    except RecursionError:
        raise Refused(f"what is to be enforced is {_TOO_DEEP}") from None


def _composed(form: OutputForm, enforced: Collection[str]) -> _Made | None:
    tools = form.callable
    is_open = form.choice.mode == "auto" and form.choice.names is None
    rules = Rules(
        tools,
        open_names=is_open and form.constrain != "declared" and not _are_all_strict(tools),
        parallel=form.parallel,
        tokens=form.tokens,
        enforced=enforced,
    )
    calls = rules.rule(form.calls(rules)) if form.calls is not None and tools else None
    body = body_of(rules, form.answer) if form.answer is not None else None
    start = expression(Composition(form, rules, calls, body))
    if start is None:
        return None
    return _Made(rules.document(start, tokens=True), rules.document(start, tokens=False))


def _are_all_strict(tools: Sequence[Tool]) -> bool:
    return all(map(is_wanted, tools))


def _enforced(form: OutputForm) -> frozenset[str]:
    """The tools whose calls must be valid.

    Those of which that is only hoped are left out where it cannot be had.
    """
    names, hoped = set(), 0
    for tool in form.callable:
        if form.constrain == "off" or is_free(tool):
            continue
        if is_wanted(tool):
            names.add(tool.name)
        elif form.constrain == "declared":
            hoped += size(tool)
            if hoped <= MAX_ENFORCED_CHARS and not _reason(form, tool):
                names.add(tool.name)
    return frozenset(names)


def _reason(form: OutputForm, tool: Tool) -> str:
    """Why calls of a tool cannot be enforced; nothing if they can."""
    alone = replace(form, tools=(tool,), answer=None, parallel=False)
    try:
        check(tool)
        made = _compose(replace(alone, choice=replace(form.choice, mode="required")), {tool.name})
    except Refused as refused:
        return str(refused)
    except RecursionError:
        return f"what it asks for is {_TOO_DEEP}"
    return _error_of(made.checkable) if made is not None else ""


def _blamed(form: OutputForm, enforced: Collection[str], error: str) -> RequestError:
    """The refusal, with the field of the tool that is refused alone."""
    for tool in form.callable:
        reason = _reason(form, tool) if tool.name in enforced else ""
        if reason:
            return _refusal(tool, reason)
    param = form.answer.param if form.answer is not None else "tools"
    return RequestError(f"the tools cannot be enforced together: {error}", param, "invalid_schema")


def _refusal(tool: Tool, reason: str) -> RequestError:
    code = "invalid_schema" if tool.format is None else "invalid_grammar"
    return RequestError(f"the tool '{tool.name}': {reason}", tool.param, code)


def _trusts_calls(form: OutputForm) -> bool:
    """Text that begins like a call is free where it is not the one token that is not free."""
    if not form.callable or form.compose is not None:
        return bool(form.callable and form.tokens)
    return form.has_opener or (form.must_call and form.think_close is None)


def _error_of(grammar: str) -> str:
    return _ERRORS.get(grammar, lambda: error_of(grammar), len)
