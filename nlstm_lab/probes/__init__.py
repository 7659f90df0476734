"""Instruments: arrays and frames in and out, no plots."""

from nlstm_lab.probes import nested_language, segment_studies, studies
from nlstm_lab.probes.baselines import shuffled, untrained
from nlstm_lab.probes.boundaries import boundaries, plain
from nlstm_lab.probes.claims import claims, note
from nlstm_lab.probes.completion import Completer, Completion, complete, continued, offered
from nlstm_lab.probes.connectivity import connectivity
from nlstm_lab.probes.context import context_accuracy, repetition, suggested, suggestions
from nlstm_lab.probes.decoding import decode, labels
from nlstm_lab.probes.flushing import flushes
from nlstm_lab.probes.gathering import (
    carriers,
    conditions,
    gather,
    intervals,
    lost,
    medians,
    needed,
    paired,
    quantities,
    reach,
)
from nlstm_lab.probes.horizons import horizon
from nlstm_lab.probes.interventions import attribute, intervene, reread
from nlstm_lab.probes.jacobians import persistence
from nlstm_lab.probes.lags import profile, survey, within_seed
from nlstm_lab.probes.liveness import along, classes, effective_rank, shares
from nlstm_lab.probes.memorization import gradient_by_distance
from nlstm_lab.probes.published import published_accuracy, published_connectivity, published_training
from nlstm_lab.probes.records import digest, ensure
from nlstm_lab.probes.segment_studies import pen
from nlstm_lab.probes.segments import mutual_information
from nlstm_lab.probes.statistics import bootstrap, compare
from nlstm_lab.probes.timescales import gate_timescales, state_timescales
from nlstm_lab.probes.tracing import trace
from nlstm_lab.probes.updates import updates
from nlstm_lab.probes.writing import write
from nlstm_lab.statistics import t_interval

__all__ = [
    "Completer",
    "Completion",
    "along",
    "attribute",
    "bootstrap",
    "boundaries",
    "carriers",
    "claims",
    "classes",
    "compare",
    "complete",
    "conditions",
    "connectivity",
    "context_accuracy",
    "continued",
    "decode",
    "digest",
    "effective_rank",
    "ensure",
    "flushes",
    "gate_timescales",
    "gather",
    "gradient_by_distance",
    "horizon",
    "intervals",
    "intervene",
    "labels",
    "lost",
    "medians",
    "mutual_information",
    "needed",
    "nested_language",
    "note",
    "offered",
    "paired",
    "pen",
    "persistence",
    "plain",
    "profile",
    "published_accuracy",
    "published_connectivity",
    "published_training",
    "quantities",
    "reach",
    "repetition",
    "reread",
    "segment_studies",
    "shares",
    "shuffled",
    "state_timescales",
    "studies",
    "suggested",
    "suggestions",
    "survey",
    "t_interval",
    "trace",
    "untrained",
    "updates",
    "within_seed",
    "write",
]
