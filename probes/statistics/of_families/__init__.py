"""Statistics that only families use: trees, strata of items, ratios, similarity of layers.

What scores or boards need as well belongs one folder up.
"""
