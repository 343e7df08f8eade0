"""From model files to an encoder, what is kept of its forward passes, and the store.

Nothing here knows tasks or probes, which begin in `examples/`.
"""
