"""Arguments, sub-commands, the run that prints, and the Python entry point."""
