"""Interactive views of runs and texts in JupyterLab; each also leaves a picture, a figure and a page behind."""
