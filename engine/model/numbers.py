"""Tensors of a checkpoint as arrays: fp32, fp16, and bf16, which NumPy has from ml_dtypes.

Whoever reads bf16 imports this module: it makes the type known to NumPy, by its name too, which
safetensors asks for.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
Floats: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[Any]
"""Of one of the three types; mapped memory that may not be written, where the file has it so."""
