"""The grammar and the lexicon that write the embedded corpus `sample`.

What the corpus holds and which conventions it follows is described in docs/sample-corpus.md.
"""
