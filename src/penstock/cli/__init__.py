"""One file per verb; each prints one report."""
