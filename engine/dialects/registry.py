"""All dialects, and which one a checkpoint speaks."""

from __future__ import annotations

from collections.abc import Container

from engine.dialects.deepseek_dsml import DEEPSEEK_V4, DEEPSEEK_V32, DEEPSEEK_V41
from engine.dialects.deepseek_v3 import DEEPSEEK_V3, DEEPSEEK_V31
from engine.dialects.dialect import Dialect
from engine.dialects.gemma3 import GEMMA3
from engine.dialects.gemma4 import FUNCTIONGEMMA, GEMMA4
from engine.dialects.glm import GLM_45, GLM_47
from engine.dialects.harmony import HARMONY
from engine.dialects.hermes import HERMES
from engine.dialects.kimi_k2 import KIMI_K2
from engine.dialects.kimi_k3 import KIMI_K3
from engine.dialects.llama_json import LLAMA_JSON
from engine.dialects.mimo import MIMO
from engine.dialects.minimax import MINIMAX
from engine.dialects.minimax_m3 import MINIMAX_M3
from engine.dialects.mistral import MAGISTRAL, MISTRAL
from engine.dialects.plain import PLAIN
from engine.dialects.pythonic import PYTHONIC
from engine.dialects.qwen_xml import QWEN_XML
from engine.errors import StartupError

# The first that fits is taken: those with delimiters of their own come before those without.
DIALECTS: tuple[Dialect, ...] = (
    DEEPSEEK_V41, DEEPSEEK_V4, DEEPSEEK_V32, DEEPSEEK_V3, DEEPSEEK_V31, KIMI_K2, KIMI_K3,
    GLM_45, GLM_47, MINIMAX_M3, MINIMAX, QWEN_XML, MIMO, HARMONY, GEMMA4, FUNCTIONGEMMA,
    MAGISTRAL, MISTRAL, HERMES, LLAMA_JSON, PYTHONIC, GEMMA3, PLAIN,
)  # fmt: skip
DEFAULT = HERMES
NAMES = tuple(dialect.name for dialect in DIALECTS)


def choose(template: str | None, control_tokens: Container[str], wanted: str | None) -> Dialect:
    """The dialect of a checkpoint: `wanted` by name, else by its chat template and control tokens.

    Raises StartupError for an unknown name.
    """
    if wanted is not None:
        named = next((dialect for dialect in DIALECTS if dialect.name == wanted), None)
        if named is None:
            raise StartupError(f"there is no dialect '{wanted}'; there are {', '.join(NAMES)}")
        return named
    fitting = (d for d in DIALECTS if d.fits(template or "", control_tokens))
    return next(fitting, DEFAULT)
