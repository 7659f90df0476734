"""Learning curves and printed tables beside ours. Notebooks 11, 13 to 15, 21, 30 and 31."""
