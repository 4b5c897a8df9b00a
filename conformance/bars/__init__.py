"""The bars of the issues at full size; the gate runs seeded subsets."""
