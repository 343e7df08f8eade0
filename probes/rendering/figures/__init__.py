"""Figures for papers, at the width of a column."""
