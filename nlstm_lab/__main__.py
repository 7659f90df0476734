"""`python -m nlstm_lab` is `nlstm-lab`."""

from nlstm_lab.cli import main

main()
