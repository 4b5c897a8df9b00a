"""The drift check is clean, and it bites."""

import copy

import pytest

from specs.document import Specs, load
from specs.drift import drift

SPECS = load()


def without_field(stem: str, component: str, field: str) -> Specs:
    documents = dict(SPECS.documents)
    documents[stem] = copy.deepcopy(documents[stem])
    schema = documents[stem]["components"]["schemas"][component]
    owner = next(s for s in [schema, *schema.get("allOf", [])] if field in s.get("properties", {}))
    del owner["properties"][field]
    return Specs(documents)


def test_nothing_is_missing() -> None:
    missing, count = drift(SPECS)
    assert [str(found) for found in missing] == []
    assert count > 400


@pytest.mark.parametrize(
    ("stem", "component", "field"),
    [
        ("chat_completions", "ChatCompletionRequest", "web_search_options"),
        ("chat_completions", "ApproximateLocation", "timezone"),
        ("chat_completions", "ImageSource", "detail"),
        ("chat_completions", "TextPart", "prompt_cache_breakpoint"),
        ("chat_completions", "ChatMessage", "refusal"),
        ("chat_completions", "ToolCallDelta", "index"),
        ("completions", "CompletionRequest", "suffix"),
        ("completions", "CompletionLogprobs", "text_offset"),
        ("shared", "PromptTokensDetails", "cache_write_tokens"),
        ("models", "ModelCard", "owned_by"),
    ],
)
def test_a_removed_field_is_found(stem: str, component: str, field: str) -> None:
    missing, _ = drift(without_field(stem, component, field))
    places = [found.ref for found in missing if found.field == field]
    assert any(place.endswith(f"{stem}.yaml#/components/schemas/{component}") for place in places)


def test_a_removed_common_field_is_missing_on_both_routes() -> None:
    missing, _ = drift(without_field("shared", "ControlFields", "temperature"))
    owners = {found.ref.rsplit("/", 1)[1] for found in missing}
    assert {"ChatCompletionRequest", "CompletionRequest"} <= owners
    assert "MessagesRequest" not in owners, "the Anthropic SDK has no temperature"


def test_a_kind_that_a_list_leaves_out_has_no_schema() -> None:
    documents = copy.deepcopy(SPECS.documents)
    kinds = documents["messages"]["components"]["schemas"]["HostedBlock"]["properties"]["type"]
    kinds["enum"].remove("fallback")
    found = [str(missing) for missing in drift(Specs(documents))[0]]
    assert found and all("'fallback'" in one and "has no schema" in one for one in found)


def test_a_field_without_disposition_is_found() -> None:
    documents = copy.deepcopy(SPECS.documents)
    schema = documents["chat_completions"]["components"]["schemas"]["ToolMessage"]
    del schema["properties"]["tool_call_id"]["x-disposition"]
    (found,) = drift(Specs(documents))[0]
    assert str(found).endswith("ToolMessage: `tool_call_id` has no disposition")


def test_a_response_field_that_is_not_required_is_found() -> None:
    documents = copy.deepcopy(SPECS.documents)
    documents["completions"]["components"]["schemas"]["CompletionChoice"]["required"].remove("text")
    found = [str(missing) for missing in drift(Specs(documents))[0]]
    assert found == [
        "specs/completions.yaml#/components/schemas/CompletionChoice:"
        " `text` is required in the official response"
    ]
