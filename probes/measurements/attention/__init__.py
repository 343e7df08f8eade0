"""Attention of single heads."""
