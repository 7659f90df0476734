"""Interactive views of runs and texts in JupyterLab; each also leaves a picture, a figure and a page behind."""

from nlstm_lab.widgets.boundaries import BoundaryExplorer
from nlstm_lab.widgets.explorer import CellExplorer
from nlstm_lab.widgets.interventions import InterventionLab, PatchLab
from nlstm_lab.widgets.runs import Dashboard, RunBrowser
from nlstm_lab.widgets.training import TrainingExplorer
from nlstm_lab.widgets.words import AutocompleteDemo, ConnectivityExplorer

__all__ = [
    "AutocompleteDemo",
    "BoundaryExplorer",
    "CellExplorer",
    "ConnectivityExplorer",
    "Dashboard",
    "InterventionLab",
    "PatchLab",
    "RunBrowser",
    "TrainingExplorer",
]
