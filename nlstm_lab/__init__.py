"""nlstm_lab: recurrent networks with nested and hierarchical memory, trained, probed and drawn.

Everything is imported when it is first used, so `import nlstm_lab as lab` costs nothing:

    run = lab.runs.ensure("ptb_char_nlstm", seed=0)
    trace = lab.probes.trace(run.model(), "a short text")
    figure = lab.figures.cell_activations(trace)
"""

import lazy_loader

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
