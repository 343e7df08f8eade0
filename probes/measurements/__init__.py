"""Measurements, and plug-ins with their digests."""
