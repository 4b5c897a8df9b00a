"""How fast a running server is; `python -m conformance.bench`."""
