"""Instruments: arrays and frames in and out, no plots."""

from nlstm_lab.probes.tracing import trace

__all__ = ["trace"]
