"""One plan-and-judge pair a file; each becomes a command of its own."""
