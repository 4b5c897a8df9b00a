"""The generated files are those that the specs give."""

import re
from pathlib import Path

import pytest

from specs.bundle import bundle
from specs.codegen import HEADER
from specs.document import Specs, load
from specs.generate import OUTPUTS, ROOT, differences, replace


def test_committed_files_are_fresh() -> None:
    assert "".join(differences(load(), ROOT)) == ""


def test_edited_stray_and_lost_files_are_found(tmp_path: Path) -> None:
    specs = load()
    replace(specs, tmp_path)
    (tmp_path / "generated" / "routes.py").write_text("edited\n")
    (tmp_path / "generated" / "stray.py").write_text("stray\n")
    (tmp_path / "docs" / "parity" / "models.md").unlink()
    found = "".join(differences(specs, tmp_path))
    for name in ("generated/routes.py", "generated/stray.py", "docs/parity/models.md"):
        assert f"--- committed/{name}" in found


def test_generation_replaces_the_folders(tmp_path: Path) -> None:
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "stray.py").write_text("stray\n")
    replace(load(), tmp_path)
    assert not (tmp_path / "generated" / "stray.py").exists()


def test_every_generated_file_says_so() -> None:
    files = [path for name in OUTPUTS for path in (ROOT / name).rglob("*.*")]
    for path in files:
        if path.suffix != ".pyc":
            assert HEADER[2:] in path.read_text(encoding="utf-8"), path


def test_no_class_has_a_number_for_a_name() -> None:
    for path in (ROOT / "generated").glob("*.py"):
        names = re.findall(
            r"^(?:class )?(\w+)(?:\(BaseModel| = TypeAliasType)", path.read_text(), re.M
        )
        assert [name for name in names if name[-1].isdigit()] == [], path


def test_one_name_in_two_files_is_refused() -> None:
    documents = load().flattened().documents
    documents["models"]["components"]["schemas"]["Health"] = {"type": "object"}
    response = documents["models"]["paths"]["/v1/models"]["get"]["responses"]["200"]
    response["content"]["application/json"]["schema"] = {
        "$ref": "models.yaml#/components/schemas/Health"
    }
    with pytest.raises(ValueError, match="Health is defined twice"):
        bundle(Specs(documents))
