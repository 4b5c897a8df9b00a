"""A multiple-choice task of our own for lm-evaluation-harness; `python -m` its `items` makes it."""
