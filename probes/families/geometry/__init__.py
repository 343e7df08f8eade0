"""Geometry: how the vectors of words lie in space, layer by layer (Ethayarajh 2019 and after)."""
