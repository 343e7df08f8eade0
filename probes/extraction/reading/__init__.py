"""From texts to the store: subwords, windows, batches, the encoder, collectors, shards.

Finding and loading models belongs to `models/`, and what changes a pass to `changing/`.
"""
