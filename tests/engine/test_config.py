"""Configuration: every option by three ways, one line for each mistake."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, get_args

import pytest

from engine.config import Config, resolve
from engine.conversation import Effort
from engine.errors import StartupError
from engine.types import RepetitionDetection

OPTIONS = {item.name: item for item in dataclasses.fields(Config) if item.name != "sources"}

# A value of each option that is not its default: as text, and what it means.
VALUES: dict[str, tuple[str, Any]] = {
    "model": ("org/name", "org/name"),
    "dtype": ("fp32", "fp32"),
    "quantization": ("int4", "int4"),
    "scripted": ("replies.json", Path("replies.json")),
    "dialect": ("hermes", "hermes"),
    "max_context": ("4096", 4096),
    "max_concurrency": ("3", 3),
    "max_queue": ("5", 5),
    "prefill_chunk": ("64", 64),
    "max_batch_tokens": ("99", 99),
    "kv_tokens": ("8192", 8192),
    "threads": ("3", 3),
    "deterministic": ("true", True),
    "speculation": ("off", "off"),
    "draft_tokens": ("3", 3),
    "draft_rows": ("24", 24),
    "draft_model": ("small", "small"),
    "host": ("127.0.0.2", "127.0.0.2"),
    "port": ("0", 0),
    "alias": ("one", ("one",)),
    "model_names": ("known", "known"),
    "api_key_file": ("keys", Path("keys")),
    "allow_open": ("true", True),
    "state_dir": ("state", Path("state")),
    "default_max_tokens": ("7", 7),
    "clamp_max_tokens": ("true", True),
    "thinking": ("off", "off"),
    "reasoning_effort": ("xhigh", "xhigh"),
    "thinking_token_budget": ("2048", 2048),
    "constrain_tools": ("declared", "declared"),
    "repetition_detection": ("64:2:20", RepetitionDetection(64, 2, 20)),
    "sampling_ranges": (
        "temperature=0.5:1, top_k=1:40",
        {"temperature": (0.5, 1.0), "top_k": (1.0, 40.0)},
    ),
    "max_body_bytes": ("1000", 1000),
    "frontend_threads": ("1", 1),
    "heartbeat_seconds": ("0.5", 0.5),
    "drain_seconds": ("0", 0.0),
    "store": ("off", "off"),
    "store_max_responses": ("9", 9),
    "store_max_bytes": ("1000", 1000),
    "store_max_days": ("0", 0),
    "log_level": ("debug", "debug"),
}


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    return "HELIOGRAPH_" + name.upper()


def arguments(name: str, text: str) -> list[str]:
    return [flag(name)] if OPTIONS[name].metadata.get("switch") else [flag(name), text]


def toml(tmp_path: Path, name: str, value: Any) -> Path:
    path = tmp_path / "heliograph.toml"
    shown = str(value).lower() if isinstance(value, bool) else value
    if isinstance(value, (str, Path)):
        shown = f'"{value}"'
    elif isinstance(value, tuple):
        shown = list(value)
    elif isinstance(value, RepetitionDetection):
        shown = f'"{value.max_pattern_size}:{value.min_pattern_size}:{value.min_count}"'
    elif isinstance(value, dict):
        shown = "{" + ", ".join(f"{key} = {list(pair)}" for key, pair in value.items()) + "}"
    details = OPTIONS[name].metadata
    key = details.get("key", name)
    path.write_text(f"[{details['section']}]\n{key} = {shown}\n")
    return path


def test_the_table_has_every_option_and_no_default() -> None:
    assert set(VALUES) == set(OPTIONS)
    assert all(value != OPTIONS[name].default for name, (_, value) in VALUES.items())


@pytest.mark.parametrize("name", VALUES)
def test_an_option_is_set_by_each_of_the_three_ways(name: str, tmp_path: Path) -> None:
    text, value = VALUES[name]
    path = toml(tmp_path, name, value)
    ways = {
        flag(name): resolve(arguments(name, text), {}),
        variable(name): resolve([], {variable(name): text}),
        str(path): resolve(["--config", str(path)], {}),
    }
    for source, config in ways.items():
        assert getattr(config, name) == value
        assert config.sources == {name: source}
        assert config.lines() == [f"{name} = {value} ({source})"]


@pytest.mark.parametrize("name", VALUES)
def test_the_command_line_wins_over_the_environment_over_the_file(
    name: str, tmp_path: Path
) -> None:
    text, value = VALUES[name]
    environment = {"HELIOGRAPH_CONFIG": str(toml(tmp_path, name, value))}
    assert getattr(resolve([], environment), name) == value
    others = {
        "thinking": "on", "constrain_tools": "off",
        "dtype": "bf16", "quantization": "none", "speculation": "ngram",
        "model_names": "any", "log_level": "error", "host": "::1",
        "store": "sqlite", "repetition_detection": "3:3:3", "sampling_ranges": "top_p=0.5:0.5",
    }  # fmt: skip
    other = others.get(name, "false" if isinstance(value, bool) else "44")
    environment[variable(name)] = other
    assert resolve([], environment).sources == {name: variable(name)}
    assert getattr(resolve([], environment), name) != value
    last = resolve(arguments(name, text), environment)
    assert (getattr(last, name), last.sources) == (value, {name: flag(name)})


@pytest.mark.parametrize("quantization", ["int8", "int4"])
def test_fp32_weights_are_not_quantised(quantization: str) -> None:
    given = ["--dtype", "fp32", "--quantization"]
    with pytest.raises(StartupError, match=f"leave it out, or --quantization {quantization}"):
        resolve([*given, quantization], {})
    assert resolve([*given, "none"], {}).dtype == "fp32"


def test_a_draft_model_is_no_use_where_nothing_is_drafted() -> None:
    with pytest.raises(StartupError, match="--draft-model"):
        resolve(["--draft-model", "small", "--speculation", "off"], {})


def test_nothing_given_is_the_defaults_and_no_lines() -> None:
    config = resolve([], {"HELIOGRAPH": "x", "HELIOGRAPH_UNRELATED": "y", "PATH": "z"})
    assert config == Config()
    assert config.lines() == []


def test_help_explains_each_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        resolve(["--help"], {})
    assert caught.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, item in OPTIONS.items():
        assert flag(name) in text
        assert item.metadata["help"].split(";")[0] in text
        if item.default not in (None, (), False, dataclasses.MISSING):
            assert f"(default: {item.default})" in text
    assert "--config" in text and "HELIOGRAPH_" in text


def test_aliases_repeat_on_the_command_line_and_split_in_the_environment() -> None:
    assert resolve(["--alias", "a", "--alias", "b"], {}).alias == ("a", "b")
    assert resolve([], {"HELIOGRAPH_ALIAS": " a, b,,"}).alias == ("a", "b")


WRONG = {
    "port": ["x", "-1", "65536", "1.5", ""],
    "max_context": ["0", "-5", "many"],
    "max_concurrency": ["0"],
    "threads": ["0", "all"],
    "heartbeat_seconds": ["-1", "nan", "inf", "soon"],
    "drain_seconds": ["-0.5"],
    "allow_open": ["maybe", ""],
    "store": [
        "",
        "on",
        "SQLite",
        "mysql://host/db",
        "host/db",
        "postgres",
        "postgresql+asyncpg://h/d",
    ],
    "store_max_responses": ["0", "-1", "many"],
    "store_max_bytes": ["0", "1GB"],
    "store_max_days": ["-1", "0.5", "inf"],
    "dtype": ["fp16"],
    "quantization": ["int2", "INT8", "Q4_0"],
    "model_names": ["some"],
    "log_level": ["loud"],
    "thinking": ["true", "adaptive"],
    "reasoning_effort": ["", "ultra", "0", "101", "-5", "7.5"],
    "thinking_token_budget": ["0", "x"],
    "constrain_tools": ["all"],
    "repetition_detection": ["", "64", "64:1", "64:1:1", "4:5:2", "0:0:2", "5000:1:2", "a:b:c"],
    "sampling_ranges": [
        "temperature",
        "temperature=1",
        "temperature=1:0",
        "temperature=a:b",
        "seed=0:1",
        "temperature=nan:1",
        "temperature=0:1;top_p=0:1",
    ],
}


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, ts in WRONG.items() for t in ts])
def test_a_wrong_variable_is_one_line_that_names_it(name: str, text: str) -> None:
    with pytest.raises(StartupError) as caught:
        resolve([], {variable(name): text})
    message = str(caught.value)
    assert variable(name) in message and "\n" not in message
    assert repr(text) in message


@pytest.mark.parametrize(("name", "text"), [("port", "x"), ("max_context", "0")])
def test_a_wrong_flag_is_one_line_that_names_it(name: str, text: str) -> None:
    with pytest.raises(StartupError) as caught:
        resolve([flag(name), text], {})
    assert flag(name) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[server]\nport = 'x'", "port"),
        ("[server]\nport = true", "port"),
        ("[server]\nport = [1]", "port"),
        ("[server]\nhost = {a = 1}", "host"),
        ("[server]\nallow_open = 'maybe'", "allow_open"),
        ("[server]\nalias = 5", "alias"),
        ("[server]\nalias = [1, {a = 2}]", "alias"),
        ("[model]\ndtype = 5", "dtype"),
        ("[model]\ndtype = ['fp32']", "dtype"),
        ("[engine]\nport = 1", "port"),
        ("[server]\nprot = 1", "prot"),
        ("[server.deeper]\nport = 1", "deeper"),
        ("[unknown]\nx = 1", "x"),
        ("port = 1", "port"),
        ("[server\n", "TOML"),
        ("[sampling]\nranges = {temperature = 1}", "sampling_ranges"),
        ("[sampling]\nranges = {temperature = [1]}", "sampling_ranges"),
        ("[sampling]\nranges = {seed = [0, 1]}", "sampling_ranges"),
        ("[sampling]\nrepetition_detection = 64", "repetition_detection"),
        ("[server]\nranges = {}", "ranges"),
        ("[server]\nthinking = true", "thinking"),
        ("[server]\nreasoning_effort = true", "reasoning_effort"),
        ("[tools]\nconstrain = 'all'", "constrain_tools"),
        ("[tools]\nconstrain_tools = 'off'", "constrain_tools"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_file_and_option(
    tmp_path: Path, content: str, named: str
) -> None:
    path = tmp_path / "heliograph.toml"
    path.write_text(content)
    with pytest.raises(StartupError) as caught:
        resolve(["--config", str(path)], {})
    message = str(caught.value)
    assert str(path) in message and named in message and "\n" not in message


@pytest.mark.parametrize("kind", ["missing", "folder", "binary"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "missing.toml" if kind == "missing" else tmp_path
    if kind == "binary":
        path = tmp_path / "binary.toml"
        path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StartupError, match=str(path)):
        resolve([], {"HELIOGRAPH_CONFIG": str(path)})


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True),
        ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("example.invalid", False),
        ("", False),
    ],
)  # fmt: skip
def test_a_public_address_needs_a_key_or_permission(host: str, loopback: bool) -> None:
    if loopback:
        assert resolve(["--host", host], {}).host == host
    else:
        with pytest.raises(StartupError, match="--allow-open") as caught:
            resolve(["--host", host], {})
        assert "--api-key-file" in str(caught.value)
    assert resolve(["--host", host, "--allow-open"], {}).host == host
    assert resolve(["--host", host, "--api-key-file", "keys"], {}).host == host


def test_ranges_may_be_a_table_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "heliograph.toml"
    path.write_text("[sampling.ranges]\ntemperature = [0.7, 1]\ntop_p = [0.8, 0.95]\n")
    found = resolve(["--config", str(path)], {}).sampling_ranges
    assert found == {"temperature": (0.7, 1.0), "top_p": (0.8, 0.95)}


def test_efforts_are_words_or_numbers(tmp_path: Path) -> None:
    for effort in get_args(Effort):
        assert resolve(["--reasoning-effort", effort], {}).reasoning_effort == effort
    assert resolve(["--reasoning-effort", "80"], {}).reasoning_effort == 80
    path = tmp_path / "heliograph.toml"
    path.write_text("[server]\nreasoning_effort = 80\n")
    assert resolve(["--config", str(path)], {}).reasoning_effort == 80


def test_the_configuration_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://user:secret@host:5432/base", "postgresql://user:***@host:5432/base"),
        ("postgresql://user:se:c/r@et@host/base", "postgresql://user:***@host/base"),
        ("postgresql+psycopg://:secret@host/base", "postgresql+psycopg://:***@host/base"),
        ("postgresql://host/b?password=secret&x=y", "postgresql://host/b?password=***&x=y"),
        ("postgresql://user@host:5432/base", "postgresql://user@host:5432/base"),
    ],
)
def test_passwords_in_urls_are_not_logged(text: str, shown: str) -> None:
    config = resolve([], {"HELIOGRAPH_STORE": text})
    assert config.store == text
    assert config.lines() == [f"store = {shown} (HELIOGRAPH_STORE)"]


def test_passwords_in_wrong_urls_are_not_told() -> None:
    with pytest.raises(StartupError) as caught:
        resolve(["--store", "mysql://user:secret@host/base"], {})
    assert "secret" not in str(caught.value)
    assert "'mysql://user:***@host/base' (--store)" in str(caught.value)
