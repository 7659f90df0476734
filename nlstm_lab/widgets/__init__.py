"""Interactive views of runs and texts in JupyterLab; each also leaves a picture, a figure and a page behind."""

from nlstm_lab.widgets.explorer import CellExplorer
from nlstm_lab.widgets.interventions import InterventionLab

__all__ = [
    "CellExplorer",
    "InterventionLab",
]
