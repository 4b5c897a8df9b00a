"""The specs of all routes, and the programs that read them."""
