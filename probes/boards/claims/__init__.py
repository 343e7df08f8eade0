"""Claims of the literature about vectors, heads and layers, tested on results."""
