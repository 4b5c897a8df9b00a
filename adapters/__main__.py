"""`python -m adapters`: the server.

Kept apart from serve.py because the engine process imports its parent's main module, and must not
load the HTTP side with it.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from adapters.serve import main

    sys.exit(main())
