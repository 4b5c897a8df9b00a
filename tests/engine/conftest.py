"""Keeps torch's idle threads from spinning: test runs share their cores."""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "0")
