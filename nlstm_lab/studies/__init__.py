"""One question, one folder: what is measured (`measure`, frames out) beside what is drawn (`draw`, frames in)."""
