"""What the literature says about layers, held against results."""
