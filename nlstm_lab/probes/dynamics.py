"""Fixed and slow points of a network under a constant input, and the time constants of its motion near them.

After Sussillo and Barak (2013): s is all that a network carries from step to step, F(s) one step under the constant
input. From states of a text |F(s) - s| is minimized: where it reaches 0 is a fixed point, where it stays small a slow
one. An eigenvalue of F's Jacobian there is a mode, which shrinks to 1/e in -1 / ln |eigenvalue| steps.
"""

import copy
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import torch
import xarray as xr
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import reading
from nlstm_lab.probes.tracing import trace
from nlstm_lab.settings import counted

FIXED = 1e-6  # the length of F(s) - s below which a point is fixed
SLOW = 0.05  # of the median length of a step along the text: below it, a point is slow
SAME = 1e-3  # largest difference of tanh s of two starts that came to the same point
ENOUGH = 1e-12  # relative change of s and of |F(s) - s| below which a search ends
STARTS = 4
TRIED = 300  # points that a search tries at most, from each start

Map = Callable[[Tensor], Tensor]


def fixed_points(model: Network, text: reading.Text, *, constant: Any = None, starts: int = STARTS) -> xr.Dataset:
    """Find the points at which a network rests, or nearly so, while it reads the same input again and again.

    Args:
        model: A network whose step is smooth: one without boundaries or a clock.
        text: The search starts at states evenly spread over it.
        constant: The symbol that is read, its code, or a vector [1, features]; None for the mean along the text.
        starts: How many states; from each Levenberg and Marquardt's method tries `TRIED` points at most.

    Returns:
        Dimensions point, memory (hidden states, too), unit and mode, the slowest first. `state` (point, memory, unit);
        `speed`, the length of F(s) - s, `kind` (fixed, slow or moving) and `starts` that came there (point);
        `eigenvalue` (point, mode, part), `timescale` in steps, infinite where a mode does not shrink (point, mode), and
        `share` of each memory in a mode (point, mode, memory). Attribute `step`: the median one along the text.

    Raises:
        UsageError: The network chooses when to move, or the text is shorter than the starts.
    """
    codes = reading.encode(model, text)
    if not {name.rpartition(".")[2] for name in model.recurrent.cells[0].state_names} <= {"h", "c"}:
        raise UsageError("a network that chooses when to move has no smooth step: take one without boundaries or clock")
    traced = reading.skipped(trace(model, codes, predictions=False), 0, 2)
    starts = counted(starts, "starts", 1, len(codes) - 1)  # at most a start a step
    parts = reading.memory_states(traced) | reading.hidden_states(traced)  # what a network carries
    along, places = torch.from_numpy(np.concatenate([part.values for part in parts.values()], -1)).double(), [*parts]
    model = copy.deepcopy(model).cpu().double()  # SciPy searches there
    with reading.evaluating(model):
        move = _move(model, codes, constant)
        begun = along[np.linspace(1, len(codes) - 1, starts).round()]
        ended = [_slowest(move, state) for state in tqdm(begun, leave=False, unit=" starts")]
    step = float((along[1:] - along[:-1]).norm(dim=-1).median())
    points, counts = _distinct(sorted(ended, key=lambda state: _speed(move, state)))
    speeds = np.array([_speed(move, state) for state in points])
    modes = [_modes(_jacobian(move, state), len(places)) for state in points]
    eigenvalues = np.stack([values for values, _ in modes])
    data: dict[str, Any] = {
        "state": (("point", "memory", "unit"), torch.stack(points).unflatten(-1, (len(places), -1)).numpy()),
        "speed": ("point", speeds),
        "kind": ("point", np.where(speeds < FIXED, "fixed", np.where(speeds < SLOW * step, "slow", "moving"))),
        "starts": ("point", counts),
        "eigenvalue": (("point", "mode", "part"), np.stack([eigenvalues.real, eigenvalues.imag], -1)),  # as files hold
        "share": (("point", "mode", "memory"), np.stack([shares for _, shares in modes])),
    }
    size = np.abs(eigenvalues)
    with np.errstate(divide="ignore"):  # steps in which a mode shrinks to 1/e; infinite where it does not
        data["timescale"] = (("point", "mode"), np.where(size < 1, -1 / np.log(np.minimum(size, 1)), np.inf))
    coords = {"memory": places, "part": ["real", "imaginary"]}
    return xr.Dataset(data, coords, {"model": model.name, "step": step})


def _move(model: Network, codes: Tensor, constant: Any) -> Map:
    """One step of states [B, all units] under the constant input."""
    recurrent = model.recurrent
    asked: Any = codes if constant is None else [constant] if isinstance(constant, Integral) else constant
    x = model.vectors(reading.encode(model, asked, "constant")).mean(0)
    depth = len(reading.names(recurrent)) // recurrent.num_layers

    def move(states: Tensor) -> Tensor:
        parts = states.unflatten(-1, (-1, recurrent.hidden_size)).transpose(0, 1)
        cells, hidden = parts[: -recurrent.num_layers], parts[-recurrent.num_layers :]
        packed = (hidden, cells if depth == 1 else cells.unflatten(0, (-1, depth))) if depth else hidden
        moved = recurrent(x.expand(1, len(states), -1), packed)[1]
        return torch.cat([reading.component(recurrent, moved, name) for name in reading.every_name(recurrent)], -1)

    return move


@torch.no_grad()
def _speed(move: Map, state: Tensor) -> float:
    return float((move(state[None])[0] - state).norm())


def _jacobian(move: Map, state: Tensor) -> Tensor:
    """dF/ds: each row by a copy of the state, all in one step backwards."""
    copies = state.expand(len(state), -1).clone().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(move(copies), copies, torch.eye(len(state), dtype=state.dtype))[0]


def _slowest(move: Map, state: Tensor) -> Tensor:
    """Where |F(s) - s| is smallest near a state, by Levenberg and Marquardt's method."""
    one = torch.eye(len(state), dtype=state.dtype)

    def moved(s: np.ndarray) -> Any:
        return move(torch.from_numpy(s)[None])[0].detach().numpy() - s

    def slope(s: np.ndarray) -> np.ndarray:
        return (_jacobian(move, torch.from_numpy(s)) - one).numpy()

    least = {"xtol": ENOUGH, "ftol": ENOUGH, "gtol": ENOUGH, "max_nfev": TRIED}
    found = scipy.optimize.least_squares(moved, state.numpy(), slope, method="lm", **least)
    return torch.from_numpy(found.x)


def _distinct(ended: list[Tensor]) -> tuple[list[Tensor], list[int]]:
    """Points that differ in what the network sees of them, and how many starts came to each."""
    points, counts = list[Tensor](), list[int]()
    for state in ended:
        alike = [bool((state.tanh() - point.tanh()).abs().max() < SAME) for point in points]
        if any(alike):
            counts[alike.index(True)] += 1
        else:
            points, counts = [*points, state], [*counts, 1]
    return points, counts


def _modes(jacobian: Tensor, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, the slowest first, and the share of each part in each: |left x right eigenvector|, summed."""
    values, left, right = scipy.linalg.eig(jacobian.numpy(), left=True)
    order = np.argsort(-np.abs(values), kind="stable")
    taken = np.abs(left.conj() * right)[:, order].reshape(parts, -1, len(values)).sum(1).T
    return values[order], taken / np.maximum(taken.sum(-1, keepdims=True), np.finfo(float).tiny)
