"""nlstm_lab: recurrent networks with nested and hierarchical memory, trained, probed and drawn.

Everything is imported when it is first used, so `import nlstm_lab as lab` costs nothing:

    run = lab.runs.ensure("ptb_char_nlstm", seed=0)
    trace = lab.probes.trace(run.model(), "a short text")
    figure = lab.figures.cell_activations(trace)
In a notebook torch computes with one thread: with one a processor, kernels that share processors take several times as
long. Set OMP_NUM_THREADS before the kernel starts, or call `torch.set_num_threads(n)` after this import, for others.
"""

import os
import sys

import lazy_loader

__version__ = "0.3.0.dev0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_kernels = sys.modules.get("ipykernel.kernelapp")
if _kernels and _kernels.IPKernelApp.initialized() and "OMP_NUM_THREADS" not in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"  # which torch reads when it is imported
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
