"""Pages of results: `layers.md` of one model and corpus, the HTML report, the static board."""
