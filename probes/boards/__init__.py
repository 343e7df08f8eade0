"""Leaderboards, layer tables, comparisons and claims: tables of records that may stand together."""
