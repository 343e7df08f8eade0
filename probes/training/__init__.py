"""Probe families, losses and fits: many fits as one operation."""
