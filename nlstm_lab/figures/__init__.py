"""Data in, figure out: a function takes data first, draws into `ax` or a new figure, and returns the figure.

`data(figure)` gives every plotted number as a frame, `save` puts a figure on disk with what made it, and
`override` lays one's own style over the project's.
"""

from nlstm_lab.figures.ablation import ablation
from nlstm_lab.figures.activations import activation_summary, cell_activations
from nlstm_lab.figures.autocomplete import accuracy_by_known, training_curves
from nlstm_lab.figures.boundaries import boundary_rows, hidden_norms, update_counts
from nlstm_lab.figures.completions import completions
from nlstm_lab.figures.connectivity import connectivity_reach, connectivity_sentence, lag_profiles
from nlstm_lab.figures.contents import memory_contents, single_cells
from nlstm_lab.figures.cost import cost
from nlstm_lab.figures.curves import learning_curves, run_curves
from nlstm_lab.figures.cuts import cut_along_text, cut_effects, effect_frame, memory_horizon
from nlstm_lab.figures.death import inner_memory_ablations, inner_memory_death
from nlstm_lab.figures.graphs import computational_graphs
from nlstm_lab.figures.handwriting import handwriting_samples, handwriting_segments
from nlstm_lab.figures.hierarchy import hierarchical_architectures, hierarchical_gating
from nlstm_lab.figures.index import gallery
from nlstm_lab.figures.judged import boundary_scores, segment_lengths
from nlstm_lab.figures.memorization import unrolled_network, vanishing_gradients
from nlstm_lab.figures.overview import all_cells, liveliest
from nlstm_lab.figures.overview_verdicts import verdict_overview
from nlstm_lab.figures.plotted import attach, data
from nlstm_lab.figures.printed_curves import first_updates_and_epochs
from nlstm_lab.figures.prose import prose, what_lacks
from nlstm_lab.figures.replication import printed_and_measured
from nlstm_lab.figures.saving import manifest, save
from nlstm_lab.figures.slowness import timescale_baselines, timescale_distributions
from nlstm_lab.figures.style import COLUMN, DIVERGING, PAGE, canvas, look, override, styled
from nlstm_lab.figures.units import nested_architecture, unit_diagrams
from nlstm_lab.figures.wording import as_it_stands, dead_memories, ordering, with_interval

__all__ = [
    "COLUMN",
    "DIVERGING",
    "PAGE",
    "ablation",
    "accuracy_by_known",
    "activation_summary",
    "all_cells",
    "as_it_stands",
    "attach",
    "boundary_rows",
    "boundary_scores",
    "canvas",
    "cell_activations",
    "completions",
    "computational_graphs",
    "connectivity_reach",
    "connectivity_sentence",
    "cost",
    "cut_along_text",
    "cut_effects",
    "data",
    "dead_memories",
    "effect_frame",
    "first_updates_and_epochs",
    "gallery",
    "handwriting_samples",
    "handwriting_segments",
    "hidden_norms",
    "hierarchical_architectures",
    "hierarchical_gating",
    "inner_memory_ablations",
    "inner_memory_death",
    "lag_profiles",
    "learning_curves",
    "liveliest",
    "look",
    "manifest",
    "memory_contents",
    "memory_horizon",
    "nested_architecture",
    "ordering",
    "override",
    "printed_and_measured",
    "prose",
    "run_curves",
    "save",
    "segment_lengths",
    "single_cells",
    "styled",
    "timescale_baselines",
    "timescale_distributions",
    "training_curves",
    "unit_diagrams",
    "unrolled_network",
    "update_counts",
    "vanishing_gradients",
    "verdict_overview",
    "what_lacks",
    "with_interval",
]
