"""Statements of the literature about layers, tested on results."""
