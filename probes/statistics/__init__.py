"""Metrics as sums over sentences, the bootstrap, and tests."""
