"""Fuzzing: requests made from the specs, and bytes made from nothing."""
