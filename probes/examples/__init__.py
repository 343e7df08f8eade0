"""Examples of tasks over a corpus, and scores of their predictions."""
