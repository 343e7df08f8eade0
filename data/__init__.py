"""Sentences and corpora: what the suite reads, and from where."""
