"""The board as a static site: rankings, a page for each model, and what can be downloaded."""
