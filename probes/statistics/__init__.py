"""Metrics as sums over sentences, the bootstrap, and tests.

What only families use is in `of_families/`; tables and rows are made elsewhere.
"""
