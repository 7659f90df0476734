"""Learning curves and printed tables beside ours. Notebooks 11, 13, 14, 15, 21, 30, 31.

Nothing is measured here: the values are those that training recorded (`lab.runs.table`, `lab.runs.curves`).
"""
