"""Probing tasks: one short file each."""
