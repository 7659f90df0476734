"""Instruments: arrays and frames in and out, no plots.

What these arguments mean wherever they are taken:

    model: The network that reads (`run.model()`, or `lab.models.wrap` of your own).
    text: A string, codes [T], or an excerpt (`lab.datasets.Excerpt`), of which there may be records.
    texts: Several of them.
    trace: `lab.probes.trace(model, text)`.
    traced: `lab.probes.trace(model, text)`.
    seed: Of the random generator.
    burn_in: Steps at the start that are left out.
    moments: Steps at which a state is changed, or how many.
    distance: Predictions after a change that are compared.
    kind: How a state is changed: zero, freeze, swap or shuffle.
    piece: Characters that are read at once.
    units: Hidden units; None for all.
    memory: The name of a memory (inner, layer 2 outer, ...), or of a layer's h.
    words: What can be predicted; None for the network's own names.
    watch: Called with the share that is done.
    run: The run's name, as figures cite it.
    confidence: Of the interval.
    resamples: Of the bootstrap.
"""

from typing import Any

from nlstm_lab.door import door

_get, __all__ = door(
    __name__,
    {
        "statistics": ["bootstrap", "compare", "least", "t_interval"],
        "probes.baselines": ["shuffled", "untrained"],
        "probes.claims": ["measured_claims", "record_claim"],
        "probes.liveness": ["along", "classes", "effective_rank", "shares"],
        "probes.records": ["digest", "ensure", "recorded"],
        "probes.seeds": ["compared", "gather", "intervals", "medians"],
        "probes.edits": ["freeze", "put", "shuffle", "zero"],
        "probes.running": ["run"],
        "probes.tracing": ["trace"],
        "studies.boundaries.flushing": ["flushes"],
        "studies.boundaries.known_language": ["language_information"],
        "studies.boundaries.measure": ["boundaries", "plain"],
        "studies.boundaries.recorded": [
            "boundary_information",
            "flush_effects",
            "length_counts",
            "operation_shares",
            "segment_scores",
            "surprisal_since_flush",
            "update_costs",
        ],
        "studies.boundaries.segments": ["attained", "mutual_information"],
        "studies.boundaries.updates": ["updates"],
        "studies.connectivity.gradients": ["gradient_by_distance", "gradients"],
        "studies.connectivity.lags": ["connectivity_lags", "profile", "survey", "within_seed"],
        "studies.connectivity.measure": ["connectivity"],
        "studies.connectivity.published": [
            "published_accuracy",
            "published_connectivity",
            "published_lags",
            "published_training",
        ],
        "studies.contents.measure": ["carriers", "cell_cuts", "contents", "decode", "labels"],
        "studies.death.measure": ["doubling_slope", "remedy_outcomes", "remedy_verdicts"],
        "studies.fixed_points.measure": ["fixed_points", "slow_modes"],
        "studies.handwriting.measure": ["floored", "pen", "pen_scale", "raw_units", "write", "written"],
        "studies.interventions.horizons": ["horizon", "loss_by_context", "reach"],
        "studies.interventions.measure": ["attribute", "cuts", "intervene", "lost"],
        "studies.lens.measure": ["Lens", "lens", "lens_losses"],
        "studies.patching.measure": ["patch_map", "patches", "restored"],
        "studies.patching.pairs": ["minimal_pairs"],
        "studies.timescales.jacobians": ["persistence"],
        "studies.timescales.measure": [
            "baseline_timescales",
            "gate_timescales",
            "gates_and_persistence",
            "quantities",
            "state_timescales",
            "timescales",
        ],
        "studies.words.completion": ["Completer", "Completion", "complete", "continued", "offered"],
        "studies.words.measure": ["context_accuracy", "needed", "repetition", "suggested", "suggestions"],
    },
)


def __getattr__(name: str) -> Any:
    return _get(name)


def __dir__() -> list[str]:
    return __all__
