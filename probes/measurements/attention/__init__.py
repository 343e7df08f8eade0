"""What each attention head attends to."""
