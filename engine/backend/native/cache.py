"""The user's folder of built libraries, which nobody else may be able to write into."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Mapping
from pathlib import Path

ABANDONED = 3600.0  # seconds after which a build that left its folder behind has surely ended
UNUSED = 90 * 86400.0  # seconds after which a library that was not loaded is removed


class CacheUnusable(Exception):
    """Libraries cannot be kept; the message says why, in one line."""


class Cache:
    """Built libraries in one folder, each named by what it was built from and what it contains.

    A library is code that this process runs, so the folder must be ours alone, and a file counts
    only while it has the contents that its name promises.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls, environment: Mapping[str, str]) -> Cache:
        """`heliograph/native` of $XDG_CACHE_HOME or ~/.cache. Raises CacheUnusable."""
        try:
            base = Path(environment.get("XDG_CACHE_HOME", ""))
            root = base if base.is_absolute() else Path.home() / ".cache"
            folder = root / "heliograph" / "native"
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            folder = folder.resolve()  # what is checked is what is used
            reason = _distrust(folder)
        except OSError as error:
            raise CacheUnusable(f"{error.filename}: {error.strerror}") from None
        except RuntimeError:
            raise CacheUnusable("there is no home folder") from None
        if reason is not None:
            raise CacheUnusable(reason)
        return cls(folder)

    def find(self, key: str) -> Path | None:
        """An intact library of the key; damaged ones are removed."""
        for path in sorted(self.folder.glob(f"{key}-*.so")):
            try:
                if path.name == _name(key, path.read_bytes()):
                    os.utime(path)
                    return path
                path.unlink(missing_ok=True)
            except OSError:  # another process removed or replaced it
                continue
        return None

    def keep(self, key: str, library: Path) -> Path:
        """Move a library that was built inside the folder to where `find` sees it.

        Raises OSError.
        """
        library.chmod(0o700)
        place = self.folder / _name(key, library.read_bytes())
        library.replace(place)
        return place

    def sweep(self) -> None:
        """Remove what builds that were killed left behind, and libraries long unused."""
        for path in self.folder.iterdir():
            limit = ABANDONED if path.is_dir() else UNUSED
            try:
                if time.time() - path.lstat().st_mtime < limit:
                    continue
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            except OSError:  # another process was faster
                continue


def _name(key: str, content: bytes) -> str:
    return f"{key}-{hashlib.sha256(content).hexdigest()[:32]}.so"


def _distrust(folder: Path) -> str | None:
    """How others could put a file in place of one of the folder's; None where they cannot."""
    status = folder.stat()
    if status.st_uid != os.geteuid():
        return f"{folder} belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write into {folder}"
    if os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0):
        return f"{folder} is mounted noexec"
    for place in folder.parents:
        status = place.stat()
        if status.st_uid not in (0, os.geteuid()):
            return f"{place}, above {folder}, belongs to another user"
        # Under a sticky bit nobody can rename what is ours; a group with the user's own number is
        # the one that some systems make for each user.
        private = status.st_gid == os.getegid() == os.geteuid()
        others = stat.S_IWOTH if private else stat.S_IWOTH | stat.S_IWGRP
        if status.st_mode & others and not status.st_mode & stat.S_ISVTX:
            return f"others may write into {place}, above {folder}"
    return None
