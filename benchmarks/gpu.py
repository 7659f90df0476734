"""The first hour on a GPU: its tests, its speed, then groups of experiments, several runs side by side.

python benchmarks/gpu.py check                        # the tests of training and of the fast paths, there
python benchmarks/gpu.py speed                        # steps.py: loop, compiled, one graph, nn.LSTM
python benchmarks/gpu.py train table1 --minutes 20    # a group, or experiments by a shell pattern; goes on again later
python benchmarks/gpu.py pack records.tar.gz          # what was recorded, and checkpoints of what is not done
"""

import argparse
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import torch

from nlstm_lab import experiments, paths
from nlstm_lab.cells.fast import has_bf16
from nlstm_lab.training import find_device

GROUPS = {
    "table1": [f"ptb_char_{row}{experiments.ADOPTED}" for row in ("nlstm", "lstm2", "nlstm_logfreq", "lstm2_logfreq")],
    "hmlstm": [f"ptb_char_{row}" for row in ("hmlstm_step+normalize_boundary=true", "lnlstm", "hmlstm_step")],
    "autocomplete": ["autocomplete_nlstm", "autocomplete_lstm", "autocomplete_gru"],
}
GRACE = 120  # seconds in which a run that is stopped may save


def train(names: list[str], scale: str, seeds: list[int], minutes: float, side_by_side: int) -> int:
    """Train so many runs at a time, seed by seed, until the minutes are over; a run that is stopped saves before.

    Returns:
        How many did not come to their end, stopped ones left out.
    """
    waiting = [(name, seed) for seed in seeds for name in names]
    precision = "bf16" if has_bf16(find_device("auto")) else "fp32"
    how = ["--scale", scale, "--precision", precision]
    end, failed = time.monotonic() + 60 * minutes, 0
    running: dict[subprocess.Popen[bytes], tuple[str, int]] = {}
    while (waiting or running) and time.monotonic() < end:
        while waiting and len(running) < side_by_side:
            name, seed = waiting.pop(0)
            patience = min(5, experiments.get(name, scale).training.epochs)
            ends = ["--patience", str(patience)] if scale == "paper" else []
            command = [sys.executable, "-m", "nlstm_lab", "train", name, "--seed", str(seed), *how, *ends]
            running[subprocess.Popen(command)] = (name, seed)
        for process in [process for process in running if process.poll() is not None]:
            print(*running.pop(process), "ended with", process.returncode, flush=True)
            failed += process.returncode != 0
        time.sleep(0.2)
    for process in running:
        process.send_signal(signal.SIGINT)
    for process, which in running.items():
        try:
            print(*which, "stopped with", process.wait(GRACE), flush=True)
        except subprocess.TimeoutExpired:
            process.kill()
            print(*which, "killed: it goes on from its last checkpoint", flush=True)
    return failed


def pack(file: Path) -> None:
    """Put what git does not know of the runs, checkpoints among it, into an archive."""
    listed = subprocess.run(["git", "ls-files", "--others", "-z"], cwd=paths.runs(), capture_output=True, check=True)
    with tarfile.open(file, "w:gz") as archive:
        for name in filter(None, listed.stdout.decode().split("\0")):
            archive.add(paths.runs() / name, name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["check", "speed", "train", "pack"])
    parser.add_argument("what", nargs="?", default="table1", help="a group, a pattern, or the archive")
    parser.add_argument("--scale", default="paper")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--side-by-side", type=int, default=6)
    given = parser.parse_args()
    torch.set_num_threads(1)
    here = Path(__file__).parent
    match given.step:
        case "check":
            tests = [here.parent / "tests" / name for name in ("cells", "training")]
            return subprocess.run([sys.executable, "-m", "pytest", "-q", "-k", "cuda", *tests]).returncode
        case "speed":
            return subprocess.run([sys.executable, here / "steps.py", "--record", "gpu"]).returncode
        case "pack":
            pack(Path(given.what))
            return 0
    names = GROUPS.get(given.what) or experiments.names(given.what)
    if not names:
        parser.error(f"{given.what!r} is no group ({', '.join(GROUPS)}) and matches no experiment")
    return train(names, given.scale, given.seeds, given.minutes, given.side_by_side)


if __name__ == "__main__":
    sys.exit(main())
