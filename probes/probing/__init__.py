"""Scores, and each kind of evidence behind them: one file each, with what recomputes them.

How probes are fitted belongs to `training/`; questions about more than probes, to families.
"""
