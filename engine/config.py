"""Configuration: one frozen object, resolved once at start.

Every option is a field of `Config`. It has a command-line flag (`--max-context`), an environment
variable (`HELIOGRAPH_MAX_CONTEXT`) and a key of the TOML file (`max_context` in the section the
field names). The command line wins over the environment, the environment over the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from engine import option_values
from engine.conversation import Effort
from engine.errors import StartupError
from engine.types import RepetitionDetection

Dtype = Literal["auto", "bf16", "fp32"]
Quantization = Literal["auto", "none", "int8", "int4"]
Constrain = Literal["strict", "declared", "off"]
SpeculationKind = Literal["off", "ngram"]


def _option(section: str, help_text: str, default: Any, **details: Any) -> Any:
    details |= {"section": section, "help": help_text}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=details)
    return field(default=default, metadata=details)


@dataclass(frozen=True, slots=True)
class Config:
    """The resolved configuration. `sources` says where each value that is not a default is from."""

    model: str | None = _option(
        "model",
        "a Hugging Face folder, a GGUF file or a hub id; without it, the embedded model",
        None,
    )
    dtype: Dtype = _option(
        "model", "number format of the weights", "auto", choices=("auto", "bf16", "fp32")
    )
    quantization: Quantization = _option(
        "model",
        "most that is kept of each weight; 'auto' keeps what the file has, 'none' rounds to bf16",
        "auto",
        choices=("auto", "none", "int8", "int4"),
    )
    scripted: Path | None = _option(
        "model",
        "a JSON file of replies that stand in for the model (needs no torch)",
        None,
        parse=Path,
    )
    dialect: str | None = _option(
        "model",
        "how the model writes its tool calls and thoughts; without it, what its chat template says",
        None,
    )
    max_context: int | None = _option(
        "engine",
        "context window in tokens, prompt and output together",
        None,
        parse=option_values.positive,
    )
    max_concurrency: int = _option(
        "engine", "sequences that are generated at the same time", 16, parse=option_values.positive
    )
    max_queue: int = _option(
        "engine",
        "sequences that may wait behind them before requests get 429",
        256,
        parse=option_values.positive,
    )
    prefill_chunk: int = _option(
        "engine",
        "prompt tokens of one sequence that one step computes at most",
        256,
        parse=option_values.positive,
    )
    max_batch_tokens: int = _option(
        "engine",
        "tokens that one step computes at most, over all sequences",
        512,
        parse=option_values.positive,
    )
    kv_tokens: int | None = _option(
        "engine",
        "tokens that the KV cache holds; without it, what the memory allows",
        None,
        parse=option_values.positive,
    )
    threads: int | None = _option(
        "engine",
        "threads that compute; without it, the cores that this process may use",
        None,
        parse=option_values.positive,
    )
    deterministic: bool = _option(
        "engine",
        "the same text for a request whatever else the server does: no bf16 products for prompts",
        False,
        switch=True,
    )
    speculation: SpeculationKind = _option(
        "engine",
        "how next tokens are guessed that the model then checks several at a time; 'ngram' copies "
        "what followed the last tokens before, 'off' guesses nothing",
        "ngram",
        choices=("off", "ngram"),
    )
    draft_tokens: int = _option(
        "engine",
        "tokens that are guessed for one sequence and step at most",
        8,
        parse=option_values.positive,
    )
    draft_rows: int = _option(
        "engine",
        "decoding sequences and guesses that one step computes at most, before it guesses less",
        16,
        parse=option_values.positive,
    )
    draft_model: str | None = _option(
        "model",
        "a smaller model with the same vocabulary that guesses where the text has no precedent",
        None,
    )
    host: str = _option("server", "address to listen on", "127.0.0.1")
    port: int = _option(
        "server", "port to listen on; 0 takes a free one", 8000, parse=option_values.port
    )
    alias: tuple[str, ...] = _option(
        "server",
        "another name of the model; the first one is the name in replies (repeatable)",
        (),
        repeat=True,
    )
    model_names: str = _option(
        "server",
        "'any' serves every requested model name, 'known' refuses unknown and missing ones",
        "any",
        choices=("any", "known"),
    )
    api_key_file: Path | None = _option(
        "server",
        "a file with one key, or with lines 'name = key' for several tenants",
        None,
        parse=Path,
    )
    allow_open: bool = _option(
        "server", "listen on a public address without a key", False, switch=True
    )
    state_dir: Path | None = _option(
        "server",
        "folder for what outlives the server: the key of thoughts, and stored responses; "
        "without it, heliograph in $XDG_STATE_HOME or in ~/.local/state",
        None,
        parse=Path,
    )
    default_max_tokens: int | None = _option(
        "server",
        "output limit of requests that name none; without it, the remaining context",
        None,
        parse=option_values.positive,
    )
    thinking: str = _option(
        "server",
        "whether the model thinks where a request says nothing; 'auto' leaves it to the template",
        "auto",
        choices=("auto", "on", "off"),
    )
    reasoning_effort: Effort | int | None = _option(
        "server",
        "effort of requests that name none: none, minimal, low, medium, high, xhigh, max, or a "
        "number where the model takes one",
        None,
        parse=option_values.effort,
    )
    thinking_token_budget: int | None = _option(
        "server",
        "tokens that thoughts may have where a request names no budget",
        None,
        parse=option_values.positive,
    )
    constrain_tools: Constrain = _option(
        "tools",
        "tools whose calls must match their schemas: 'strict' ones, all 'declared' ones, or 'off'",
        "strict",
        choices=("strict", "declared", "off"),
        key="constrain",
    )
    repetition_detection: RepetitionDetection | None = _option(
        "sampling",
        "end sequences that loop: MAX_PATTERN:MIN_PATTERN:MIN_COUNT in tokens, as in 64:1:20",
        None,
        parse=option_values.repetition,
    )
    sampling_ranges: Mapping[str, tuple[float, float]] = _option(
        "sampling",
        "clamp requested values, as in 'temperature=0.7:1,top_p=0.8:0.95'; in the file a table",
        {},
        parse=option_values.ranges,
        key="ranges",
    )
    clamp_max_tokens: bool = _option(
        "server",
        "shorten an output limit that does not fit the context instead of refusing it",
        False,
        switch=True,
    )
    max_body_bytes: int = _option(
        "server",
        "largest request body, as sent and decompressed",
        32 * 1024 * 1024,
        parse=option_values.positive,
    )
    frontend_threads: int = _option(
        "server",
        "threads that parse bodies, render templates and tokenise",
        2,
        parse=option_values.positive,
    )
    heartbeat_seconds: float = _option(
        "server",
        "silence after which a stream sends a sign of life; 0 sends none",
        15.0,
        parse=option_values.seconds,
    )
    drain_seconds: float = _option(
        "server",
        "time that running requests get to end when the server is told to stop",
        30.0,
        parse=option_values.seconds,
    )
    store: str = _option(
        "store",
        "where Responses are kept: 'sqlite' is a file in the state folder, a postgresql:// URL a "
        "database that servers may share, 'off' nowhere",
        "sqlite",
        parse=option_values.store,
        key="where",
    )
    store_max_responses: int = _option(
        "store",
        "responses kept over all tenants; the longest unused make room for new ones",
        10_000,
        parse=option_values.positive,
        key="max_responses",
    )
    store_max_bytes: int = _option(
        "store",
        "bytes that they may take together, compressed as they are stored",
        1024 * 1024 * 1024,
        parse=option_values.positive,
        key="max_bytes",
    )
    store_max_days: int = _option(
        "store",
        "days for which they are kept; 0 keeps them for ever",
        30,
        parse=option_values.days,
        key="max_days",
    )
    log_level: str = _option(
        "server", "how much is logged", "info", choices=("debug", "info", "warning", "error")
    )
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.allow_open or self.api_key_file or option_values.is_loopback(self.host)):
            raise StartupError(
                f"{self.host} can be reached from other machines: "
                "give --api-key-file, or --allow-open to serve without a key"
            )
        if self.dtype == "fp32" and self.quantization in ("int8", "int4"):
            raise StartupError(
                f"--dtype fp32 computes with all that the file has of its weights: "
                f"leave it out, or --quantization {self.quantization}"
            )
        if self.draft_model is not None and self.speculation == "off":
            raise StartupError("--draft-model guesses nothing under --speculation off")

    def lines(self) -> list[str]:
        """One line per option that is not its default, for the start-up log."""
        return [
            f"{name} = {option_values.without_password(getattr(self, name))} ({self.sources[name]})"
            for name in sorted(self.sources)
        ]


_OPTIONS = {item.name: item for item in dataclasses.fields(Config) if item.name != "sources"}
_KEYS = {
    (item.metadata["section"], item.metadata.get("key", name)): name
    for name, item in _OPTIONS.items()
}
"""Section and key of the TOML file of each option."""


def resolve(arguments: Sequence[str], environment: Mapping[str, str]) -> Config:
    """Read command line, environment and file. Raises StartupError for what they get wrong."""
    given = vars(_parser().parse_args(arguments))
    file = given.pop("config") or environment.get("HELIOGRAPH_CONFIG")
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}

    def take(name: str, raw: Any, source: str) -> None:
        values[name] = _parse(name, raw, source)
        sources[name] = source

    for name, raw in _read_file(Path(file)).items() if file else ():
        take(name, raw, str(file))
    for name in _OPTIONS:
        variable = f"HELIOGRAPH_{name.upper()}"
        if variable in environment:
            take(name, environment[variable], variable)
    for name, raw in given.items():
        if raw is not None:
            take(name, raw, f"--{name.replace('_', '-')}")
    return Config(**values, sources=sources)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="heliograph",
        description="Serve one model over the OpenAI API. Every option is also a key of the TOML "
        "file and an environment variable HELIOGRAPH_NAME.",
    )
    parser.add_argument("--config", metavar="FILE", help="a TOML file with options")
    for name, item in _OPTIONS.items():
        details = item.metadata
        shown = item.default not in (None, (), False, dataclasses.MISSING)
        default = f" (default: {item.default})" if shown else ""
        settings: dict[str, Any] = {"default": None, "help": details["help"] + default}
        if details.get("switch"):
            settings |= {"action": "store_const", "const": "true"}
        elif details.get("repeat"):
            settings |= {"action": "append", "metavar": "NAME"}
        elif "choices" in details:
            settings["choices"] = details["choices"]
        else:
            settings["metavar"] = name.split("_")[-1].upper()
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    return parser


def _read_file(path: Path) -> dict[str, Any]:
    try:
        sections = tomllib.loads(path.read_text())
    except OSError as error:
        raise StartupError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartupError(f"{path} is not a TOML file: {error}") from None
    values: dict[str, Any] = {}
    for section, content in sections.items():
        if not isinstance(content, dict):
            raise StartupError(f"{path}: {section} belongs into a section")
        for key, value in content.items():
            if (section, key) not in _KEYS:
                raise StartupError(f"{path}: unknown option {key} in section [{section}]")
            values[_KEYS[section, key]] = value
    return values


def _parse(name: str, raw: Any, source: str) -> Any:
    """Turn a file's, a variable's or a flag's value into the field's."""
    details = _OPTIONS[name].metadata
    try:
        if details.get("switch"):
            return option_values.switch(raw)
        if details.get("repeat"):
            names = raw.split(",") if isinstance(raw, str) else raw
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError("must be a list of names")
            return tuple(name.strip() for name in names if name.strip())
        if "choices" in details and raw not in details["choices"]:
            raise ValueError(f"must be one of {', '.join(details['choices'])}")
        if name == "sampling_ranges" and isinstance(raw, dict):
            raw = ",".join(f"{key}={low}:{high}" for key, (low, high) in raw.items())
        if isinstance(raw, (bool, list, dict)):
            raise ValueError("has the wrong type")
        parse: Callable[[str], Any] = details.get("parse", str)
        return parse(str(raw))
    except (ValueError, TypeError) as error:
        shown = option_values.without_password(raw) if isinstance(raw, str) else raw
        raise StartupError(f"{name} = {shown!r} ({source}): {error}") from None


def from_process() -> Config:
    """The configuration of this process's command line and environment."""
    return resolve(sys.argv[1:], os.environ)
