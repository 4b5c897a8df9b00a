"""Makes pydantic models from the specs with datamodel-code-generator."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from .document import Json, Specs, rewrite, without

HEADER = "# Generated from specs/; do not edit. Run: nox -s generate"
# In strict mode pydantic takes 0 for Literal[False] and 1 for Literal[True].
OVERRIDES = {"Off": "generated.literals.Off", "On": "generated.literals.On"}
_FLAGS = """
--input-file-type openapi --output-model-type pydantic_v2.BaseModel
--target-python-version 3.11 --target-pydantic-version 2.14
--use-annotated --field-constraints --enum-field-as-literal all
--use-standard-collections --use-union-operator --use-default-kwarg
--strict-nullable --use-missing-sentinel --use-typed-nullable-map-values
--use-type-alias --use-schema-description --use-single-line-docstring
--field-extra-keys-without-x-prefix x-disposition
--strict-refs --disable-timestamp --formatters builtin
"""
FLAGS = [*_FLAGS.split(), "--type-overrides", json.dumps(OVERRIDES)]


def write_models(specs: Specs, output: Path) -> None:
    """Write one module for each stem into the folder `output`.

    Schemas that only `x-refused` names are left out: no request with them is ever accepted.
    Raises RuntimeError with the generator's messages when it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "specs"
        source.mkdir()
        for stem, document in admitted(specs).items():
            (source / f"{stem}.yaml").write_text(json.dumps(document), encoding="utf-8")
        command = [sys.executable, "-m", "datamodel_code_generator", "--input", str(source)]
        command += ["--output", str(output), "--custom-file-header", HEADER, *FLAGS]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)


def admitted(specs: Specs) -> dict[str, Json]:
    """The documents with only those schemas that a message on the wire can have."""
    used = specs.reachable(refused=False)
    return {stem: _admitted(stem, document, used) for stem, document in specs.documents.items()}


def _admitted(stem: str, document: Json, used: set[str]) -> Json:
    file = f"{stem}.yaml"
    schemas = {
        name: without(schema, "x-refused")
        for name, schema in document["components"]["schemas"].items()
        if f"{file}#/components/schemas/{name}" in used
    }
    local = rewrite(schemas, lambda ref: ref.removeprefix(file))
    return {**document, "paths": {}, "components": {"schemas": local}}
