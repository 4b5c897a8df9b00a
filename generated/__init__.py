# Generated from specs/; do not edit. Run: nox -s generate
