"""Tables and curves in the terminal, Markdown, LaTeX, figures and the HTML page."""
