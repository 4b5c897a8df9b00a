"""Black-box proof over HTTP: knows the specs and the protocols, nothing of the program."""
