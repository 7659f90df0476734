"""A network: one-hot or embedded input, recurrent layers, and a readout."""

import hashlib
import importlib
import inspect
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab import cells
from nlstm_lab.cells.base import Module
from nlstm_lab.datasets.base import Batch, Mixture, Symbols, Vectors, Vocabulary
from nlstm_lab.errors import MissingRun, UsageError
from nlstm_lab.models import parts
from nlstm_lab.models.parts import Interface, MixtureDensity, ModelConfig, Score
from nlstm_lab.settings import check_seed

CELL_TYPES: dict[str, type[cells.Recurrent]] = {
    "rnn": cells.RNN,
    "lstm": cells.LSTM,
    "gru": cells.GRU,
    "nlstm": cells.NestedLSTM,
    "lnlstm": cells.LayerNormLSTM,
    "cwrnn": cells.ClockworkRNN,
    "hmlstm": cells.HMLSTM,
    "hrnn": cells.HierarchicalRNN,
}


def check_network(model: Any, name: str = "model") -> None:
    """UsageError unless `model` is a network."""
    if not isinstance(model, Network):
        raise UsageError(f"{name} must be a network, run.model() or lab.models.wrap(...), not {type(model).__name__}")


class Network(Module):
    """Input map, recurrent layers and readout: `outputs, state = network(inputs, state)`.

    Outputs are [T, B, size], or [B, size] with one prediction a sequence. The state is that of the recurrent layers.
    Whatever reads raises MissingRun where the weights are not kept.

    Args:
        recurrent, readout: The recurrent layers, and what goes from their h to the outputs.
        embedding: From inputs to what the layers read; None for one-hot symbols, or vectors as they are.
        density: What makes a probability of the outputs; None for a softmax.
        segment_ends: Of given boundaries, [symbols, levels]: 1 where a symbol ends a segment.
        words: The names of what is predicted, by code, where that is not the vocabulary's next symbol.
        output_dropout: The probability with which what the readout reads is zeroed in training.
    """

    def __init__(
        self,
        recurrent: cells.Recurrent,
        readout: nn.Module,
        embedding: nn.Module | None = None,
        vocabulary: Vocabulary | None = None,
        per_sequence: bool = False,
        density: MixtureDensity | None = None,
        segment_ends: Tensor | None = None,
        name: str = "",
        words: Sequence[str] | None = None,
        output_dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.output_dropout = output_dropout or 0.0
        self.segment_ends: Tensor | None
        self.register_buffer("segment_ends", segment_ends, persistent=False)  # [symbols, levels] of given boundaries
        self.add_module("unit", recurrent)  # its name in every record of weights
        self.readout, self.embedding, self.density = readout, embedding, density
        self.vocabulary, self.per_sequence, self.name, self.words = vocabulary, per_sequence, name, words
        self.missing_weights: tuple[str, str] | None = None  # their digest, and what reading says; then on "meta"
        self.config: ModelConfig | None = None  # what it was built from
        self.interface: Interface | None = None
        self.as_built = ""  # its `computation` then

    @property
    def recurrent(self) -> cells.Recurrent:
        """The recurrent layers."""
        return self._modules["unit"]  # type: ignore[return-value]

    def require_weights(self) -> None:
        """Refuse to go on where the weights are not kept."""
        if self.missing_weights:
            raise MissingRun(self.missing_weights[1])

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        self.require_weights()
        return next(self.parameters()).device

    @property
    def output_bias(self) -> nn.Parameter | None:
        """The bias of the readout's last layer; None where it has none."""
        last = self.readout.output if isinstance(self.readout, parts.OutputModule) else self.readout
        return getattr(last, "bias", None)

    def inputs(self, inputs: Tensor) -> Tensor:
        """Return what the layers read: symbols as they are (one-hot vectors are looked up), or their embedding."""
        self.require_weights()
        return inputs if self.embedding is None else self.embedding(inputs)

    def vectors(self, inputs: Tensor) -> Tensor:
        """Return what gradients are taken by: `inputs`, but one-hot symbols as vectors, [..., input_size]."""
        read = self.inputs(inputs)
        like = self.recurrent.cells[0].like
        return read if read.is_floating_point() else F.one_hot(read, self.recurrent.input_size).to(like.dtype)

    def recurrent_arguments(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the layers' arguments before the state: their input, and the boundaries where these are given."""
        given = () if self.segment_ends is None else (self.segment_ends[inputs],)
        return self.inputs(inputs), *given

    def trace(
        self, inputs: Tensor, state: Any = None, hooks: Sequence[cells.Hook] | None = None
    ) -> tuple[Tensor, Any, list[dict[str, Any]]]:
        """Read as `Recurrent.trace` does, with every gate and state kept, and `hooks`, one a layer."""
        trace: Any = self.recurrent.trace  # with given boundaries it takes one argument more
        return trace(*self.recurrent_arguments(inputs), state, hooks)  # type: ignore[no-any-return]

    def forward(self, inputs: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        hidden, state = self.read(inputs, state)
        return self.readout(hidden), state

    def read(self, inputs: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Return what the readout is given, and the new state: `forward` without its last step."""
        hidden, state = self.recurrent(*self.recurrent_arguments(inputs), state)
        return self._dropped(hidden), state

    def read_boundaries(self, inputs: Tensor, state: Any = None) -> tuple[Tensor, Any, Tensor, Tensor]:
        """Read as `read` does, and return z and z~ of every layer and step [T, num_layers, B], too; or UsageError."""
        if not isinstance(self.recurrent, cells.HMLSTM):
            raise UsageError(f"a {type(self.recurrent).__name__} has no boundary detectors, whose rates could be held")
        hidden, state, z, z_tilde = self.recurrent.read_boundaries(self.inputs(inputs), state)
        return self._dropped(hidden), state, z, z_tilde

    def _dropped(self, hidden: Tensor) -> Tensor:
        return F.dropout(hidden[-1] if self.per_sequence else hidden, self.output_dropout, self.training)

    def nats(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute -log p of each target under the outputs, in the targets' shape (without the features of points)."""
        if self.density is not None:
            return self.density(outputs, targets)  # type: ignore[no-any-return]
        return F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), reduction="none").view(targets.shape)

    def score(self, batch: Batch, state: Any = None) -> tuple[Score, Any]:
        """Score a `batch` on the network's device, over the predictions that its mask counts; and the new state."""
        hidden, state = self.read(batch.inputs, state)
        return self.score_hidden(hidden, batch), state

    def score_hidden(self, hidden: Tensor, batch: Batch) -> Score:
        """Score a `batch` of which the readout is given `hidden`: `score` after its reading."""
        outputs = self.readout(hidden)
        mask = torch.ones_like(hidden[..., 0], dtype=torch.bool) if batch.mask is None else batch.mask
        nats = (self.nats(outputs, batch.targets) * mask).sum()
        with torch.no_grad():
            right = torch.zeros_like(mask) if self.density else outputs.argmax(-1) == batch.targets
            began = nats.new_full((), batch.inputs.shape[1] if batch.fresh else 0)
            everything = nats.new_full((), mask.numel())
        return Score(nats, mask.sum(), (right & mask).sum(), right.sum(), everything, began)


def computation(model: nn.Module) -> str:
    """Return what a `model` computes with beside its weights: plain attributes of its modules, and its symbols."""
    own = [(k, v) for part in model.modules() for k, v in vars(part).items() if isinstance(v, str | int | float)]
    known = [getattr(model, name, "") for name in ("vocabulary", "words", "config")]
    return f"{model!r} {[pair for pair in own if pair[0] not in ('training', 'as_built')]} {known}"


def parameter_count(module: nn.Module) -> int:
    """Count the trained values of a `module` of torch."""
    return sum(parameter.numel() for parameter in module.parameters())


def build(config: ModelConfig, ends: Interface, *, seed: int, name: str = "") -> Network:
    """Build a network, its parameters drawn from `seed` on the CPU, whatever device follows.

    Args:
        config, ends: The literal values that it is made from, and the sizes of input and output with the symbols.
        seed: Of the parameters.

    Raises:
        ValueError: There is no such cell type; its class raises for bad sizes and flags. UsageError: bad seed.

    >>> import torch, nlstm_lab as lab
    >>> config = lab.models.ModelConfig("nlstm", hidden_size=12)
    >>> network = lab.models.build(config, lab.models.Interface(Symbols(50), Symbols(50)), seed=0)
    >>> outputs, state = network(torch.zeros(7, 3, dtype=torch.long))  # 7 steps of 3 texts
    >>> outputs.shape
    torch.Size([7, 3, 50])
    """
    if config.cell_type not in CELL_TYPES:
        raise ValueError(
            f"cell_type must be one of {sorted(CELL_TYPES)}, not {config.cell_type!r}; import one of your own "
            "first: lab.models.cell_type('module:Class')"
        )
    with torch.random.fork_rng(devices=[]):
        # `torch.manual_seed` would seed GPUs, too, and leave them so
        torch.default_generator.manual_seed(check_seed(seed))
        network = _assemble(config, ends, name)
    network.config, network.interface = config, replace(ends, log_frequencies=None)
    network.as_built = computation(network)
    return network


def cell_type(name: str) -> str:
    """Register a cell type of your own, so that it is trained, probed and drawn like the others; return its name.

    Args:
        name: "module:Class", a subclass of `lab.cells.Recurrent`; a key of `CELL_TYPES` is returned as it is.

    Raises:
        UsageError: There is no such cell type, module or class, or the class is no Recurrent.
    """
    if name not in CELL_TYPES:
        module, separator, attribute = name.partition(":")
        if not separator:
            known = ", ".join(CELL_TYPES)
            raise UsageError(f"there is no cell type {name!r}; there are {known}, and your own as module:Class")
        try:
            own = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"the cell type {name!r} cannot be imported: {error}") from error
        if not (isinstance(own, type) and issubclass(own, cells.Recurrent)):
            raise UsageError(f"the cell type {name!r} must be a subclass of nlstm_lab.cells.Recurrent")
        CELL_TYPES[name] = own
    return name


def code_of(name: str) -> dict[str, str]:
    """The sha256 of the module in which a cell type of one's own stands, by the name that it has in a record."""
    module = sys.modules.get(name.partition(":")[0])
    if ":" not in name or module is None:
        return {}
    try:
        return {"code_sha256": hashlib.sha256(inspect.getsource(module).encode()).hexdigest()}
    except (OSError, TypeError):  # a notebook's own classes have no file
        return {}


def _assemble(config: ModelConfig, ends: Interface, name: str) -> Network:
    size, output = config.embedding_size or ends.input.size, ends.output
    embedding: nn.Module | None = None
    if config.embedding_size is not None:
        vectors, padded = isinstance(ends.input, Vectors), getattr(ends.input, "padded", False)
        make: Any = parts.dense if vectors else parts.PaddedEmbedding if padded else nn.Embedding
        embedding = make(ends.input.size, size)
    if config.embedding_weight == "glorot":
        if not isinstance(embedding, nn.Embedding):
            raise ValueError("embedding_weight is for an embedding of symbols without padding, and here is none")
        nn.init.xavier_uniform_(embedding.weight)
    wide = {"all_layers": True} if config.output_embedding_size else {}
    recurrent = CELL_TYPES[config.cell_type](size, config.hidden_size, config.num_layers, **wide, **config.flags)
    if config.initial_state == "learned":
        for cell in recurrent.cells:
            cell.learn_initial_state()
    density = MixtureDensity(output.components) if isinstance(output, Mixture) else None
    outputs = density.size if density else output.size  # type: ignore[union-attr]
    readout: nn.Module
    if config.output_embedding_size:
        readout = parts.OutputModule(config.hidden_size, config.num_layers, config.output_embedding_size, outputs)
        last = readout.output
    else:
        readout = last = parts.dense(config.hidden_size, outputs)
    if config.output_weight != "glorot":
        parts.FILLS[config.output_weight](last.weight)
    if config.output_bias == "log_frequencies" and ends.log_frequencies is not None:
        last.bias.data.copy_(ends.log_frequencies())
    segments = None
    if config.boundaries:
        if ends.vocabulary is None:
            raise ValueError("boundaries are given by symbols, and this task has no vocabulary")
        rows = [[float(one in symbols) for symbols in config.boundaries] for one in ends.vocabulary.symbols]
        segments = torch.tensor(rows)
    words = output.names if isinstance(output, Symbols) else None
    known = (ends.vocabulary, ends.per_sequence, density, segments, name, words)
    return Network(recurrent, readout, embedding, *known, config.output_dropout)
