"""Data in, figure out: a function takes data first, draws into `ax` or a new figure, and returns the figure.

`data(figure)` gives every plotted number as a frame, `save` puts a figure on disk with what made it, and
`override` lays one's own style over the project's.

What these arguments mean wherever they are taken:

    width: Inches.
    ax: The axes to draw on; None makes a new figure.
    metric: A metric's name, such as bpc.
    evaluation: How a text is cut: blocks or streams.
    splits: Some of train, valid and test.
    row: Characters a row.
"""

from typing import Any

from nlstm_lab.door import door

_get, __all__ = door(
    __name__,
    {
        "figures.plotted": ["attach", "data"],
        "figures.saving": ["manifest", "save"],
        "figures.tables": ["differences", "folded", "table"],
        "figures.style": ["COLUMN", "DIVERGING", "PAGE", "canvas", "look", "override", "styled"],
        "studies.activations.draw": ["all_cells", "cell_activations", "liveliest"],
        "studies.activations.drawn": ["activation_summary"],
        "studies.boundaries.draw": ["boundary_rows", "hidden_norms", "update_counts"],
        "studies.boundaries.draw_scores": [
            "boundary_ladder",
            "boundary_scores",
            "detector_training",
            "segment_lengths",
        ],
        "studies.connectivity.draw": ["connectivity_reach", "connectivity_sentence", "lag_profiles"],
        "studies.connectivity.draw_gradients": ["unrolled_networks", "vanishing_gradients"],
        "studies.contents.draw": ["memory_contents", "single_cells"],
        "studies.cost.draw": ["cost"],
        "studies.death.draw": ["inner_memory_death", "inner_memory_remedies"],
        "studies.diagrams.draw_hierarchical": ["hierarchical_architectures", "hierarchical_gating"],
        "studies.diagrams.draw_units": ["computational_graphs", "nested_architecture", "unit_diagrams"],
        "studies.fixed_points.draw": ["time_constants"],
        "studies.handwriting.draw": ["handwriting_samples", "handwriting_segments"],
        "studies.interventions.draw": ["cut_along_text", "cut_effects", "memory_horizon"],
        "studies.learning.draw": ["ablation", "first_updates_and_epochs", "learning_curves", "run_curves"],
        "studies.learning.draw_tables": ["printed_and_measured"],
        "studies.lens.draw": ["lens_losses"],
        "studies.patching.draw": ["carried", "patch_map"],
        "studies.timescales.draw": ["timescale_baselines", "timescale_distributions"],
        "studies.verdicts.draw": ["verdict_overview"],
        "studies.words.draw": ["accuracy_by_known", "completions", "training_curves"],
    },
)


def __getattr__(name: str) -> Any:
    return _get(name)


def __dir__() -> list[str]:
    return __all__
