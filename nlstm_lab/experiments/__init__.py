"""Every row of every table in the documents as a named experiment.

What these arguments mean wherever they are taken:

    name: An experiment's name.
    scale: smoke, small or paper.
    pattern: A shell pattern of names.
    experiment: A row of a table at one scale.
"""

from nlstm_lab.experiments import base, hm_rnn, madsen, nested_lstm
from nlstm_lab.experiments.base import Experiment, get, names, parameters, scales, variant, width_for_parameters
from nlstm_lab.experiments.nested_lstm import ADOPTED

base.KNOWN.update({(row.name, row.scale): row for row in (*nested_lstm.ROWS, *hm_rnn.ROWS, *madsen.ROWS)})

__all__ = ["ADOPTED", "Experiment", "get", "names", "parameters", "scales", "variant", "width_for_parameters"]
