"""Records: their headers and rows, keys, names, files and parameters."""
