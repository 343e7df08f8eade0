"""The embedded corpus `sample`: a grammar, its lexicon, and the three files they write.

`python -m probes.data.sample.generate` rewrites `train.conllu`, `dev.conllu` and `test.conllu`.
What the corpus holds and which conventions it follows is described in docs/sample-corpus.md.
"""
