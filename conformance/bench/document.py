"""The table inside a document, between two marks, so that it is never written by hand."""

from __future__ import annotations

from pathlib import Path

BEGIN, END = "<!-- table -->", "<!-- /table -->"


def check(path: Path) -> None:
    """Raises ValueError unless the file exists and has each mark once, in order."""
    if not path.is_file():
        raise ValueError(f"{path} is not a file")
    text = path.read_text(encoding="utf-8")
    if (text.count(BEGIN), text.count(END)) != (1, 1) or text.index(BEGIN) > text.index(END):
        raise ValueError(f"{path} must have {BEGIN} and after it {END}, once each")


def write(path: Path, table: str) -> None:
    """Put a table in place of what is between the marks. Raises ValueError as `check` does."""
    check(path)
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
