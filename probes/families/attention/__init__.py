"""Attention heads: where they attend, and how well they find relations and trees."""
