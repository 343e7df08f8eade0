"""Charts as Altair draws them: in figures for papers, in a run's folder, and on the page."""
