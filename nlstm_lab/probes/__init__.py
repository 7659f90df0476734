"""Instruments: arrays and frames in and out, no plots."""

from nlstm_lab.probes.baselines import autoregressive, shuffled, untrained
from nlstm_lab.probes.claims import claims, note
from nlstm_lab.probes.decoding import decode, labels
from nlstm_lab.probes.interventions import attribute, horizon, intervene
from nlstm_lab.probes.jacobians import persistence
from nlstm_lab.probes.liveness import along, classes, effective_rank, shares
from nlstm_lab.probes.records import digest, ensure
from nlstm_lab.probes.statistics import bootstrap, compare, curves
from nlstm_lab.probes.timescales import gate_timescales, state_timescales, summary
from nlstm_lab.probes.tracing import trace

__all__ = [
    "along",
    "attribute",
    "autoregressive",
    "bootstrap",
    "claims",
    "classes",
    "compare",
    "curves",
    "decode",
    "digest",
    "effective_rank",
    "ensure",
    "gate_timescales",
    "horizon",
    "intervene",
    "labels",
    "note",
    "persistence",
    "shares",
    "shuffled",
    "state_timescales",
    "summary",
    "trace",
    "untrained",
]
