"""When memory cells die in training, and what keeps them alive. Notebook 93.

The shares of dead cells are measured in training (`training/liveness.py`); `lab.runs.dead_shares` collects them.
"""
