"""What the outputs of a conversation may be, and how they are read: dialect, grammar, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from engine.config import Constrain
from engine.conversation import Conversation, Thinking, Tool
from engine.dialects.parser import OutputParser
from engine.dialects.pieces import Expected
from engine.errors import RequestError, StartupError
from engine.grammar.compile import grammar_of
from engine.grammar.form import OutputForm
from engine.grammar.output import OutputGrammar, output_grammar
from engine.messages import ThinkingLimits
from engine.speech import Reading
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from engine.types import GenerationRequest, Prompt, RepetitionDetection


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """How the outputs of one prompt are constrained and read; None: freely, as answer text."""

    reading: Reading | None = None
    grammar: str | None = None
    thinking: ThinkingLimits | None = None


class OutputPlanner:
    """Plans the outputs of conversations by the dialect of the loaded model.

    `constrain` says which tools' calls must match their schemas, `budget` is the cap of thoughts
    where a request names none. Raises StartupError where the model cannot keep a budget.
    """

    def __init__(
        self,
        template: ChatTemplate,
        tokenizer: Tokenizer,
        *,
        constrain: Constrain = "strict",
        budget: int | None = None,
        repetition: RepetitionDetection | None = None,
    ) -> None:
        self._template = template
        self._dialect = template.dialect
        self._marks = template.marks
        self._constrain = constrain
        self._budget = budget
        self._repetition = repetition
        delimiters = set(self._marks.tokens.values())
        visible = tokenizer.control_ids - tokenizer.special_ids - delimiters
        self._free_tokens = tuple(sorted(visible - set(tokenizer.eos_ids)))
        if budget is not None and not self._can_close:
            raise StartupError(
                "--thinking-token-budget: the model's thoughts do not end with a single token"
            )

    @property
    def _can_close(self) -> bool:
        """Whether one token ends a thought."""
        close = self._dialect.parser.think_close
        return self._template.knows_thoughts and close in self._marks.tokens

    def plan(
        self, conversation: Conversation, prompt: Prompt, request: GenerationRequest
    ) -> OutputPlan:
        """Raises RequestError for what cannot be enforced, naming the field."""
        knows_thoughts = self._template.knows_thoughts
        if not knows_thoughts and not conversation.tools:
            _refuse_budget(conversation.thinking)
            constraint = request.constraint
            return OutputPlan(grammar=None if constraint is None else grammar_of(constraint))
        expected = Expected(
            tools=_readable(conversation),
            names=conversation.tool_choice.names,
            tail=prompt.tail,
            thinks=knows_thoughts,
            verbatim=request.constraint is not None,
        )
        starts_open = self._dialect.parser(self._marks, expected).starts_thinking()
        grammar = None
        if not request.sampling.ignore_eos or _is_held(conversation, request):
            grammar = output_grammar(self._form(conversation, request, starts_open))
        return OutputPlan(
            self._reading(conversation, expected, grammar),
            _text_of(grammar),
            self._limits(conversation, request, starts_open),
        )

    def _form(
        self, conversation: Conversation, request: GenerationRequest, starts_open: bool
    ) -> OutputForm:
        dialect = self._dialect
        thinks = self._template.knows_thoughts and self._template.applied(conversation).thinks
        return OutputForm(
            tokens=self._marks.tokens,
            tools=conversation.tools,
            choice=conversation.tool_choice,
            parallel=conversation.parallel_calls,
            answer=request.constraint,
            in_thought=starts_open,
            think_open=dialect.parser.think_open if thinks else None,
            think_close=dialect.parser.think_close if thinks or starts_open else None,
            calls=dialect.grammar,
            opener=dialect.opener,
            headers=dialect.headers,
            compose=dialect.compose,
            others=self._free_tokens,
            constrain=self._constrain,
        )

    def _reading(
        self, conversation: Conversation, expected: Expected, grammar: OutputGrammar | None
    ) -> Reading:
        if grammar is not None and grammar.trusts_calls:
            expected = replace(expected, trusted=True)
        make: partial[OutputParser] = partial(self._dialect.parser, self._marks, expected)
        return Reading(
            parser=make,
            new_id=self._dialect.new_id,
            takes_id=self._dialect.takes_id,
            marks=self._marks.of_token,
            spellings=self._marks.chars,
            parallel_calls=conversation.parallel_calls,
        )

    def _limits(
        self, conversation: Conversation, request: GenerationRequest, starts_open: bool
    ) -> ThinkingLimits | None:
        budget = conversation.thinking.budget
        if not self._can_close:
            _refuse_budget(conversation.thinking)
            return None
        budget = self._budget if budget is None else budget
        repetition = request.repetition or self._repetition
        if budget is None and repetition is None:
            return None
        tokens = self._marks.tokens
        parser = self._dialect.parser
        assert parser.think_close is not None
        opener = self._dialect.opener if conversation.tools else None
        return ThinkingLimits(
            close_id=tokens[parser.think_close],
            open_ids=_ids(tokens, parser.think_open),
            end_ids=_ids(tokens, parser.think_close, opener),
            starts_open=starts_open,
            budget=budget,
            repetition=repetition,
        )


def _ids(tokens: Mapping[str, int], *spellings: str | None) -> tuple[int, ...]:
    return tuple(tokens[one] for one in spellings if one is not None and one in tokens)


def _text_of(grammar: OutputGrammar | None) -> str | None:
    return None if grammar is None else grammar.text


def _readable(conversation: Conversation) -> Mapping[str, Tool] | None:
    """The tools whose calls are read; markup in an answer that may hold no call is text."""
    if not conversation.tools or conversation.tool_choice.mode == "none":
        return None
    return {tool.name: tool for tool in conversation.tools}


def _is_held(conversation: Conversation, request: GenerationRequest) -> bool:
    """Whether the answer must be of some form, and masks are more than a help."""
    return request.constraint is not None or conversation.tool_choice.mode == "required"


def _refuse_budget(thinking: Thinking) -> None:
    if thinking.budget is not None and not thinking.advisory:
        raise RequestError(
            f"{thinking.budget_param}: the loaded model's thoughts cannot be cut, "
            "since no single token ends them",
            thinking.budget_param,
        )
