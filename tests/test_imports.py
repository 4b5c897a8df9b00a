"""The import table of the design, enforced; see ARCHITECTURE.md for it in words."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from generated.routes import ROUTES

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "adapters", "conformance")
OURS = (*PACKAGES, "generated", "specs", "tests")
MOST_LINES = 400
STEMS = sorted(path.stem for path in (ROOT / "specs").glob("*.yaml") if path.stem != "shared")

EVERY_DEVICE_LIBRARY = frozenset({"torch", "triton", "flashinfer", "transformers", "safetensors"})
EVERY_WEB_LIBRARY = frozenset({"pydantic", "pydantic_core", "fastapi", "starlette", "uvicorn"})
TEXT = ("engine.text", "engine.dialects", "engine.grammar")
VOCABULARY = (
    "engine.types", "engine.conversation", "engine.events", "engine.errors", "engine.config",
)  # fmt: skip
STEP = (
    *VOCABULARY, "engine.messages", "engine.backend.backend", "engine.core.scheduler",
    "engine.core.sequence", "engine.core.repeats", "engine.core.thinking", "engine.core.pages",
    "engine.core.prefix", "engine.core.batch", "engine.core.masks", "engine.core.loop",
    "engine.core.draft", "engine.core.draft_model", "engine.core.speculation",
)  # fmt: skip
DEVICE = (*STEP, "engine.core", "engine.model", "engine.backend")
MIDDLE_MODULES = (
    "service", "prepare", "generation", "beam", "choice", "speech", "outputs", "accumulate",
    "decide",
)  # fmt: skip
MIDDLE = (
    *VOCABULARY, *TEXT, *(f"engine.{name}" for name in MIDDLE_MODULES), "engine.messages",
    "engine.counters", "engine.client",
)  # fmt: skip
SHARED_ADAPTERS = tuple(
    f"adapters.{name}"
    for name in (
        "call", "envelope", "sse", "body", "decode", "generation", "chunks", "logprobs",
        "tools", "thinking", "validation",
    )
)  # fmt: skip
OF_MESSAGES = tuple(
    f"adapters.{name}"
    for name in (
        "seal", "message_history", "message_tools", "message_edits", "message_encode",
    )
)  # fmt: skip
OF_RESPONSES = (
    "adapters.seal", "adapters.store",
    *(
        f"adapters.response_{name}"
        for name in (
            "items", "tools", "answer", "stored", "object", "events", "output", "compaction",
            "transcript", "guards",
        )
    ),
)  # fmt: skip
STORE = (
    "adapters.store", "adapters.store_types", "adapters.store_schema", "adapters.store_database",
    "adapters.store_ledger", "adapters.store_writer",
)  # fmt: skip
FROM_ENGINE = (
    "engine.types", "engine.conversation", "engine.events", "engine.errors", "engine.service",
    "engine.generation", "engine.accumulate", "engine.decide", "engine.counters",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """`may`: our modules and packages. `never`: libraries. `stdlib_only` bans every library."""

    may: tuple[str, ...]
    never: frozenset[str] = frozenset()
    stdlib_only: bool = False


def _stem(name: str) -> Row:
    extra: dict[str, tuple[str, ...]] = {
        "tokenize": ("adapters.chat_completions", "adapters.completions")
    }
    extra |= {"chat_completions": ("adapters.chat_encode",)}
    extra |= {"responses": OF_RESPONSES, "messages": OF_MESSAGES}
    own = (f"generated.{name}", "generated.shared")
    return Row((*own, *FROM_ENGINE, *SHARED_ADAPTERS, *extra.get(name, ())), EVERY_DEVICE_LIBRARY)


_DEVICE_NEVER = EVERY_WEB_LIBRARY | {"triton", "flashinfer", "transformers"}
_LIGHT_NEVER = EVERY_WEB_LIBRARY | EVERY_DEVICE_LIBRARY
_TEXT_LIBRARIES = frozenset({"tokenizers", "jinja2"})
_ADAPTER = Row((*FROM_ENGINE, "engine.config", *SHARED_ADAPTERS, "generated.shared"))

# The row of a module is that of its longest prefix here.
TABLE: dict[str, Row] = {
    "engine": Row((), stdlib_only=True),
    "engine.config": Row(
        ("engine.types", "engine.conversation", "engine.errors", "engine.option_values"),
        stdlib_only=True,
    ),
    "engine.option_values": Row(("engine.types", "engine.conversation"), stdlib_only=True),
    "engine.types": Row(("engine.conversation",), stdlib_only=True),
    "engine.messages": Row(("engine.types", "engine.events"), stdlib_only=True),
    **{name: Row((*VOCABULARY, *TEXT), _LIGHT_NEVER) for name in TEXT},
    "engine.grammar": Row((*VOCABULARY, "engine.grammar"), _LIGHT_NEVER | _TEXT_LIBRARIES),
    "engine.core": Row(STEP, _LIGHT_NEVER | _TEXT_LIBRARIES | {"llguidance"}),
    "engine.core.masks": Row((*STEP, "engine.grammar"), _LIGHT_NEVER | _TEXT_LIBRARIES),
    "engine.core.runner": Row(DEVICE, _DEVICE_NEVER),
    "engine.core.remote": Row((*DEVICE, "engine.grammar.mask"), _LIGHT_NEVER),
    "engine.model": Row(
        (*DEVICE, "engine.text.gguf_meta"),  # a file format
        _DEVICE_NEVER | {"torch"},
    ),
    "engine.backend": Row(DEVICE, _DEVICE_NEVER),
    **{f"engine.backend.{name}": Row(DEVICE, _DEVICE_NEVER | {"torch"})
       for name in ("cpu", "native", "plans")},
    "engine.backend.backend": Row(VOCABULARY, _LIGHT_NEVER),
    "engine.backend.scores": Row((*VOCABULARY, "engine.backend.backend"), _LIGHT_NEVER),
    "engine.backend.scripted": Row(
        (*VOCABULARY, "engine.backend.backend", "engine.backend.scores"), _LIGHT_NEVER
    ),
    "engine.backend.cores": Row((), stdlib_only=True),
    **{f"engine.backend.native.{name}": Row(("engine.backend.native",), stdlib_only=True)
       for name in ("build", "cache", "compiler")},
    "engine.backend.cuda": Row(DEVICE, EVERY_WEB_LIBRARY),
    "engine.backend.kernels": Row(DEVICE, EVERY_WEB_LIBRARY),
    **{f"engine.{name}": Row(MIDDLE, _LIGHT_NEVER) for name in MIDDLE_MODULES},
    "engine.client": Row((*MIDDLE, "engine.core"), _LIGHT_NEVER),
    "adapters": Row(_ADAPTER.may, EVERY_DEVICE_LIBRARY),
    **{f"adapters.{stem}": _stem(stem) for stem in STEMS},
    "adapters.decode": Row(
        ("engine.types", "engine.conversation", "engine.errors", "adapters.call",
         "generated.shared"),
        EVERY_DEVICE_LIBRARY,
    ),
    "adapters.logprobs": Row(
        ("engine.types", "engine.events", "engine.text.tokenizer"),  # the tokenizer: for its type
        _LIGHT_NEVER,
    ),
    "adapters.seal": Row(("adapters.state",), _LIGHT_NEVER),
    "adapters.state": Row((), _LIGHT_NEVER, stdlib_only=True),
    **{name: Row((*STORE, "engine.errors"), _LIGHT_NEVER) for name in STORE},
    **{name: Row(_stem("messages").may, EVERY_DEVICE_LIBRARY)
       for name in OF_MESSAGES if name != "adapters.seal"},
    **{name: Row(_stem("responses").may, EVERY_DEVICE_LIBRARY)
       for name in OF_RESPONSES if name.startswith("adapters.response_")},
    "adapters.call": Row((*_ADAPTER.may, "adapters.seal", "adapters.store"), EVERY_DEVICE_LIBRARY),
    "adapters.tools": Row(("engine.conversation", "engine.errors"), _LIGHT_NEVER),
    "adapters.thinking": Row(("engine.conversation", "engine.errors"), _LIGHT_NEVER),
    "adapters.http": Row((), EVERY_DEVICE_LIBRARY),
    "adapters.app": Row(
        (*_ADAPTER.may, "adapters", "generated.routes"), EVERY_DEVICE_LIBRARY
    ),
    "adapters.script": Row(
        ("engine.backend.scripted", "engine.text", "engine.errors"), EVERY_DEVICE_LIBRARY
    ),
    **{f"adapters.{name}": Row(("engine", "adapters", "generated.routes"), EVERY_DEVICE_LIBRARY)
       for name in ("serve", "assemble", "server")},
    "adapters.__main__": Row(("adapters.serve",), EVERY_DEVICE_LIBRARY),
    "conformance": Row(("conformance",)),
}  # fmt: skip


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


SOURCES = {
    module_name(path): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")
}


def is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").exists()


def imports(source: str, module: str) -> Iterator[str]:
    """Every module that the source imports, wherever in it; relative ones resolved."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            package = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{package}.{alias.name}"
                ours = package.split(".")[0] in OURS
                yield name if ours and is_module(name) else package


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def row_of(module: str) -> Row:
    return TABLE[max((key for key in TABLE if within(module, (key,))), key=len)]


def violations(source: str, module: str) -> list[str]:
    row = row_of(module)
    found = []
    for name in imports(source, module):
        top = name.split(".")[0]
        if top in OURS:
            if not within(name, row.may):
                found.append(name)
        elif top in row.never or (row.stdlib_only and top not in sys.stdlib_module_names):
            found.append(name)
    return found


@pytest.mark.parametrize("module", sorted(SOURCES))
def test_a_module_imports_what_its_row_allows(module: str) -> None:
    assert violations(SOURCES[module].read_text("utf-8"), module) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("engine.types", "import numpy"),
        ("engine.errors", "from engine import config"),
        ("engine.config", "import torch"),
        ("engine.text.template", "import torch.nn"),
        ("engine.text.template", "from engine.core import loop"),
        ("engine.text.new", "def f():\n    import pydantic"),
        ("engine.core.scheduler", "from engine.text.stops import StopMatcher"),
        ("engine.core.scheduler", "from engine.backend.reference import TorchReference"),
        ("engine.core.loop", "from ..backend import scripted"),
        ("engine.core.pages", "import torch"),
        ("engine.core.loop", "from engine.grammar.pool import MatcherPool"),
        ("engine.core.sequence", "import llguidance"),
        ("engine.core.masks", "from engine.text.tokenizer import Tokenizer"),
        ("engine.core.repeats", "from engine.grammar import mask"),
        ("engine.messages", "import numpy"),
        ("engine.messages", "from engine.errors import RequestError"),
        ("engine.prepare", "from engine.core.loop import EngineLoop"),
        ("engine.prepare", "import torch"),
        ("engine.beam", "from engine.core.scheduler import Scheduler"),
        ("engine.grammar.pool", "from engine.text.tokenizer import Tokenizer"),
        ("engine.grammar.pool", "import tokenizers"),
        ("engine.grammar.pool", "from engine.core.masks import Constraints"),
        ("engine.backend.scores", "import torch"),
        ("engine.core.remote", "import torch"),
        ("engine.core.new", "from engine.core.runner import EngineSettings"),
        ("engine.core.runner", "import fastapi"),
        ("engine.backend.scripted", "import torch"),
        ("engine.backend.reference", "import triton"),
        ("engine.backend.native.load", "import torch"),
        ("engine.backend.cpu", "import torch"),
        ("engine.model.weights", "import torch"),
        ("engine.model.decoder", "from engine.text import tokenizer"),
        ("engine.service", "from engine.core.loop import EngineLoop"),
        ("engine.service", "from engine import core"),
        ("engine.service", "from adapters import sse"),
        ("engine.choice", "import pydantic"),
        ("engine.client", "from generated.shared import Usage"),
        ("engine.new", "import numpy"),
        ("adapters.completions", "from adapters.chat_completions import decode"),
        ("adapters.completions", "from adapters import models"),
        ("adapters.completions", "from . import models"),
        ("adapters.completions", "from generated.chat_completions import ChatMessage"),
        ("adapters.completions", "from engine.core import loop"),
        ("adapters.models", "from engine.text.tokenizer import Tokenizer"),
        ("adapters.models", "import torch"),
        ("adapters.models", "from adapters.app import build_app"),
        ("adapters.generation", "from adapters import completions"),
        ("adapters.decode", "from adapters import generation"),
        ("adapters.decode", "from engine.service import Service"),
        ("adapters.decode", "from generated.completions import CompletionRequest"),
        ("adapters.logprobs", "from engine.text.template import ChatTemplate"),
        ("adapters.logprobs", "import pydantic"),
        ("adapters.logprobs", "from adapters import decode"),
        ("adapters.tools", "from generated.chat_completions import Tool"),
        ("adapters.tools", "import pydantic"),
        ("adapters.chat_encode", "from adapters.chat_completions import decode"),
        ("adapters.chat_encode", "from generated.chat_completions import ChatMessage"),
        ("adapters.completions", "from adapters.chat_encode import encode"),
        ("adapters.chat_completions", "from adapters.message_history import read_history"),
        ("adapters.message_history", "from adapters.messages import decode"),
        ("adapters.message_encode", "from generated.chat_completions import ChatMessage"),
        ("adapters.messages", "from adapters.response_items import ItemReader"),
        ("adapters.response_items", "from adapters.responses import read"),
        ("adapters.response_stored", "from adapters.store_ledger import load"),
        ("adapters.response_events", "from generated.messages import MessageReply"),
        ("adapters.response_answer", "import torch"),
        ("adapters.http", "from adapters import app"),
        ("adapters.generation", "from generated.completions import Completion"),
        ("adapters.app", "from engine.client import ProcessClient"),
        ("adapters.serve", "import torch"),
        ("conformance.clients", "from engine.types import Text"),
        ("conformance.clients", "import generated.shared"),
        ("conformance.clients", "from tests import serving"),
    ],
)  # fmt: skip
def test_the_table_forbids(module: str, source: str) -> None:
    assert violations(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("engine.types", "import json, collections.abc\nfrom dataclasses import dataclass"),
        ("engine.core.loop", "from .scheduler import Scheduler\nimport numpy as np"),
        ("engine.core.runner", "def f():\n    from engine.backend.reference import X"),
        ("engine.backend.kernels", "import triton"),
        ("engine.core.masks", "import numpy\nfrom engine.grammar.pool import MatcherPool"),
        ("adapters.logprobs", "from engine.text.tokenizer import Tokenizer"),
        ("adapters.completions", "from adapters import sse\nfrom generated.completions import X"),
        ("adapters.new_shared", "import pydantic"),
        ("adapters.response_stored", "from adapters.store import StoreFailed"),
        ("conformance.clients", "import openai\nfrom conformance import server"),
    ],
)
def test_the_table_allows(module: str, source: str) -> None:
    assert violations(source, module) == []


def test_every_key_of_the_table_that_names_a_file_or_folder_is_looked_up() -> None:
    assert {"engine.types", "adapters.app", "adapters.serve"} <= set(SOURCES)
    assert row_of("engine.core.runner") is TABLE["engine.core.runner"]
    assert row_of("engine.core.scheduler") is TABLE["engine.core"]
    assert row_of("engine.textual") is TABLE["engine"]


@pytest.mark.parametrize(
    "module",
    ["adapters.app", "engine.service", "engine.core.remote", "engine.backend.cpu"],
)
def test_importing_it_loads_no_torch(module: str) -> None:
    stems = ", ".join(f"adapters.{stem}" for stem in STEMS if is_module(f"adapters.{stem}"))
    heavy = sorted(EVERY_DEVICE_LIBRARY - {"safetensors"})
    code = (
        f"import sys, {module}{', ' + stems if module == 'adapters.app' else ''}\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_every_stem_has_the_same_name_in_all_places() -> None:
    stems = {route.stem for route in ROUTES}
    assert stems == set(STEMS)
    assert all(
        is_module(f"{place}.{stem}") for stem in stems for place in ("adapters", "generated")
    )


@pytest.mark.parametrize("package", [*PACKAGES, "specs", "tests"])
def test_no_module_is_too_long(package: str) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines())
        for path in (ROOT / package).rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}
