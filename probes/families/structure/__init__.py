"""Structural probes: trees in the distances and lengths of projected word vectors."""
