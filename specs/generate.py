"""Writes generated/ and docs/parity/ from the specs: `python -m specs.generate [--check]`."""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .bundle import bundle
from .codegen import HEADER, write_models
from .document import FOLDER, Specs, load
from .pages import docs_page, literals, parity_page, route_table

ROOT = FOLDER.parent
OUTPUTS = ("generated", "docs/parity")


def generate(specs: Specs, root: Path) -> None:
    """Write everything below the empty folder `root`."""
    generated, parity = (root / name for name in OUTPUTS)
    write_models(specs, generated)
    parity.mkdir(parents=True)
    _write(generated / "routes.py", route_table(specs))
    _write(generated / "literals.py", literals())
    _write(generated / "docs.html", docs_page(specs))
    document = bundle(specs) | {"x-generated": HEADER[2:]}
    _write(generated / "openapi.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    for stem, spec in specs.documents.items():
        if spec.get("paths"):
            _write(parity / f"{stem}.md", parity_page(specs, stem))


def replace(specs: Specs, root: Path) -> None:
    """Replace what is below `root`; a failure of the generator leaves it as it was."""
    with tempfile.TemporaryDirectory() as folder:
        generate(specs, Path(folder))
        for name in OUTPUTS:
            shutil.rmtree(root / name, ignore_errors=True)
            shutil.copytree(Path(folder) / name, root / name)


def differences(specs: Specs, root: Path) -> Iterator[str]:
    """Unified diffs from what is below `root` to what the specs give now."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        generate(specs, fresh)
        for name in sorted(_files(root) | _files(fresh)):
            old, new = (_lines(base / name) for base in (root, fresh))
            yield from difflib.unified_diff(old, new, f"committed/{name}", f"specs/{name}")


def _files(root: Path) -> set[str]:
    return {
        path.relative_to(root).as_posix()
        for name in OUTPUTS
        for path in (root / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def main() -> int:
    """The command line; 1 when --check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare; 1 when stale")
    if not parser.parse_args().check:
        replace(load(), ROOT)
        return 0
    stale = list(differences(load(), ROOT))
    sys.stdout.writelines(stale)
    if stale:
        print("\nThe generated files are stale. Run: nox -s generate (python -m specs.generate)")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
