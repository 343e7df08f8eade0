"""Results as text in the terminal, Markdown, figures and an HTML page."""
