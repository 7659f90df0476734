"""Instruments: arrays and frames in and out, no plots."""

from typing import Any

from nlstm_lab.door import door

_get, __all__ = door(
    __name__,
    {
        "statistics": ["bootstrap", "compare", "t_interval"],
        "probes.baselines": ["shuffled", "untrained"],
        "probes.claims": ["measured_claims", "record_claim"],
        "probes.liveness": ["along", "classes", "effective_rank", "shares"],
        "probes.records": ["digest", "ensure", "recorded"],
        "probes.seeds": ["gather", "intervals", "medians", "paired"],
        "probes.edits": ["freeze", "put", "run", "shuffle", "zero"],
        "probes.tracing": ["trace"],
        "studies.boundaries.flushing": ["flushes"],
        "studies.boundaries.known_language": ["language_information"],
        "studies.boundaries.measure": ["boundaries", "plain"],
        "studies.boundaries.recorded": [
            "flush_effects",
            "length_counts",
            "operation_shares",
            "segment_scores",
            "surprisal_since_flush",
            "update_costs",
        ],
        "studies.boundaries.segments": ["mutual_information"],
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
        "studies.handwriting.measure": ["floored", "pen", "pen_scale", "raw_units", "write", "written"],
        "studies.interventions.horizons": ["horizon", "loss_by_context", "reach"],
        "studies.interventions.measure": ["attribute", "cuts", "intervene", "lost", "reread"],
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
