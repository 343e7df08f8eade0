"""What may stand together: leaderboards, comparisons and claims."""
