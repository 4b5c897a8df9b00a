"""Builds the native operations once for each machine and loads them.

HELIOGRAPH_NATIVE_SANITIZE=1 builds them with the address and undefined-behaviour sanitizers, for
tests: Python must then run with LD_PRELOAD of the compiler's libasan.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine.backend.native.cache import Cache, CacheUnusable
from engine.backend.native.compiler import (
    PATIENCE,
    BuildFailed,
    Compiler,
    Refused,
    find_compilers,
    summary,
)

log = logging.getLogger("heliograph.engine")

SOURCES = Path(__file__).parent
COPIES = "sources"
PLAIN = ("pool", "draw_check")  # sources that are the same for every instruction set
# Nothing that lets a compiler reorder or contract arithmetic: a row's bits are a promise.
FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-ffp-contract=off", "-fno-math-errno")
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
AVX2 = ("-mavx2", "-mfma", "-mf16c")
AVX512 = tuple(f"-mavx512{name}" for name in ("f", "bw", "vl", "dq", "vnni", "bf16"))
X86 = ("x86_64", "AMD64")


@dataclass(frozen=True, slots=True)
class Variant:
    """One more build of variant.c: its instruction set, and a header that it cannot do without."""

    name: str
    flags: tuple[str, ...]
    header: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to build. `emulation` is a folder whose `emulated.h` has the instructions of AVX-512 for
    processors that lack them.
    """

    machine: str
    sanitize: bool = False
    emulation: Path | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        return FLAGS + (SANITIZERS if self.sanitize else ())

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All but the portable one."""
        if self.machine not in X86:
            return ()
        avx512 = Variant("AVX512", (*AVX512, *AVX2), "immintrin.h")
        if self.emulation is not None:
            quick = "-O1"  # such code takes gcc half a minute to optimise
            flags = ("-DEMULATED", f"-I{self.emulation}", quick, *AVX2)
            avx512 = Variant("AVX512", flags, "emulated.h")
        return (Variant("AVX2", AVX2, "immintrin.h"), avx512)


def load(progress: Callable[[str], None], *, emulation: Path | None = None) -> ctypes.CDLL | None:
    """Load the library for this machine, building it where the user's cache lacks it.

    None where that fails, after one line of the log that says why and what helps.
    """
    sanitize = os.environ.get("HELIOGRAPH_NATIVE_SANITIZE", "") == "1"
    try:
        if sys.platform == "win32":
            raise BuildFailed("Windows is not supported", "use WSL")
        return _load(Recipe(platform.machine(), sanitize, emulation), progress)
    except BuildFailed as error:
        warn_off(error)
    except OSError as error:
        warn_off(BuildFailed(_explain(error), "look at that file or folder"))
    return None


def warn_off(error: BuildFailed) -> None:
    """Log that there are no native operations."""
    log.warning(
        "no native operations: %s; torch computes, slower. To help: %s", error, error.remedy
    )


def _load(recipe: Recipe, progress: Callable[[str], None]) -> ctypes.CDLL:
    compilers, failures = find_compilers(os.environ)
    cache, unusable = None, ""
    try:
        cache = Cache.open(os.environ)
    except CacheUnusable as error:
        unusable = str(error)
    for compiler in compilers:
        library = _load_kept(cache, build_key(compiler, recipe)) if cache else None
        if library is not None:
            return library
    for compiler in compilers:
        progress(f"building the native operations with {compiler.title} (a few seconds, once)")
        try:
            if cache is not None:
                try:
                    return _build_kept(cache, compiler, recipe)
                except OSError as error:
                    cache, unusable = None, _explain(error)
            return _build_private(compiler, recipe, unusable)
        except BuildFailed as error:
            failures.append(error)
    raise failures[0] if failures else BuildFailed("there is no C compiler")


def _load_kept(cache: Cache, key: str) -> ctypes.CDLL | None:
    """Load what an earlier build made; what does not load any more is removed."""
    path = cache.find(key)
    if path is None:
        return None
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        path.unlink(missing_ok=True)
        return None


def _build_kept(cache: Cache, compiler: Compiler, recipe: Recipe) -> ctypes.CDLL:
    """Build into the cache and load. Other processes see nothing or a whole file.

    Raises BuildFailed, and OSError where the cache cannot be written.
    """
    cache.sweep()
    folder = Path(tempfile.mkdtemp(prefix="build-", dir=cache.folder))
    try:
        library = _build_checked(compiler, recipe, folder)
        place = cache.keep(build_key(compiler, recipe, folder / COPIES), library)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _open(place)


def _build_private(compiler: Compiler, recipe: Recipe, unusable: str) -> ctypes.CDLL:
    """Build into a folder of this process, which goes once the library is loaded.

    Raises BuildFailed, and OSError where there is no place for temporary files either.
    """
    remedy = "set XDG_CACHE_HOME to a folder that you alone can write, and execute files from"
    folder = Path(tempfile.mkdtemp(prefix="heliograph-"))
    try:
        library = _open(_build_checked(compiler, recipe, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    log.warning(
        "the native operations are built at every start, as the cache cannot keep them (%s); %s",
        unusable,
        remedy,
    )
    return library


def _explain(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _open(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildFailed(f"what was built does not load ({summary(str(error))})") from None


def build_key(compiler: Compiler, recipe: Recipe, sources: Path | None = None) -> str:
    """Name what a library is built from: any change of it is another key."""
    digest = hashlib.sha256()
    emulation = recipe.emulation.glob("*.h") if recipe.emulation else ()
    for path in (*sorted((sources or SOURCES).glob("*.[ch]")), *sorted(emulation)):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    built = (recipe, recipe.flags, recipe.variants, platform.system(), _link_flags(compiler))
    digest.update(repr((built, compiler, _own_flags(compiler, recipe))).encode())
    return digest.hexdigest()[:32]


def build(compiler: Compiler, recipe: Recipe, folder: Path) -> Path:
    """Compile and link in a folder; return the library there. Raises BuildFailed.

    A variant whose flags the compiler does not know, or whose header is missing, is left out.
    """
    common = (*recipe.flags, *_own_flags(compiler, recipe))
    copies = folder / COPIES  # someone may be editing them
    copies.mkdir()
    for path in SOURCES.glob("*.[ch]"):
        shutil.copyfile(path, copies / path.name)

    def compile_source(name: str, source: str, flags: Sequence[str]) -> str:
        compiler.run([*common, *flags, "-c", f"{COPIES}/{source}", "-o", name], folder)
        return name

    variants = [each for each in recipe.variants if _knows(compiler, each, common, folder)]
    have = [f"-DHAVE_{each.name}" for each in variants]
    if recipe.emulation is not None:
        have.append("-DEMULATED")
    units: list[tuple[str, str, Sequence[str]]] = [
        ("portable.o", "variant.c", ()),
        ("program.o", "program.c", have),
        *((f"{name}.o", f"{name}.c", ()) for name in PLAIN),
    ]
    for each in variants:
        units.append((f"{each.name}.o", "variant.c", (f"-DVARIANT_{each.name}", *each.flags)))
    with ThreadPoolExecutor(len(units)) as threads:
        objects = list(threads.map(lambda unit: compile_source(*unit), units))
    library = folder / "native.so"
    sanitizers = SANITIZERS if recipe.sanitize else ()
    link = ["-shared", *sanitizers, *objects, *_link_flags(compiler), "-o", library.name]
    compiler.run(link, folder)
    return library


def _build_checked(compiler: Compiler, recipe: Recipe, folder: Path) -> Path:
    """Build what another process, which may crash, could load. Raises BuildFailed."""
    library = build(compiler, recipe, folder)
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).heliograph_abi()"
    command = [sys.executable, "-I", "-S", "-c", code, str(library)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"what {compiler.title} built hangs when it is loaded") from None
    if done.returncode != 0:
        said = summary(done.stderr) or f"exit {done.returncode}"
        raise BuildFailed(f"what {compiler.title} built does not load ({said})")
    return library


def _knows(compiler: Compiler, variant: Variant, common: Sequence[str], folder: Path) -> bool:
    """Tell whether the compiler can build for a variant's instruction set."""
    probe = folder / f"probe_{variant.name}.c"
    probe.write_text(f"#include <{variant.header}>\nint probe;\n")
    try:
        compiler.run([*common, *variant.flags, "-c", probe.name, "-o", "probe.o"], folder)
    except Refused as error:
        log.info("the native operations go without %s: %s", variant.name, error)
        return False
    return True


def _own_flags(compiler: Compiler, recipe: Recipe) -> tuple[str, ...]:
    """zig builds for the processor that it runs on, and calls its own library for atomics."""
    if not compiler.is_zig:
        return ()
    atomics = () if recipe.machine in X86 else ("-mno-outline-atomics",)
    return ("-mcpu=baseline", *atomics)


def _link_flags(compiler: Compiler) -> tuple[str, ...]:
    """zig would build its run-time library first, for a minute; nothing here needs it."""
    libraries = ("-lc", "-lm", "-lpthread")
    return ("-nostdlib", *libraries) if compiler.is_zig else ("-pthread", "-lm")
