"""Families of measurements: one folder for each group of further questions; any can be deleted."""
