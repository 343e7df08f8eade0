"""The page that people look at: one self-contained HTML file of a folder of results."""
