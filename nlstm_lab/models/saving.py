"""A network in a folder of its own, and the small trained ones that come with the package."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from nlstm_lab import paths
from nlstm_lab.datasets import registry
from nlstm_lab.errors import WAY_OUT, DamagedFile, MissingRun, UsageError, hint
from nlstm_lab.models.network import Network, build, check_network, computation
from nlstm_lab.models.parts import Interface, ModelConfig
from nlstm_lab.settings import CURRENT

CONFIG, RESULT, WEIGHTS = "config.json", "result.json", "weights.safetensors"
RUN_NAME = "{experiment}/{scale}-seed{seed}"  # of what a result says
PRETRAINED: dict[str, Any] = tomllib.loads(resources.files(__package__).joinpath("pretrained.toml").read_text("utf-8"))


def digest(weights: Mapping[str, Any]) -> str:
    """Return the sha256 of `weights`, a `state_dict`, by name, type, shape and content."""
    sha = hashlib.sha256()
    for name, value in sorted(weights.items()):
        if not isinstance(value, Tensor):
            sha.update(f"{name} {value}\n".encode())
            continue
        tensor = value.detach().cpu().contiguous()
        sha.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        sha.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def save(network: Network, folder: Path | str) -> Path:
    """Write a `network` to a `folder`, made or written over, as `config.json` and `weights.safetensors`; return it.

    Raises:
        UsageError: The network was not built from a config, as those of `wrap` are not, or was changed since in what
            the config does not say; the folder holds a run.
        LabError: The folder cannot be written to.
    """
    check_network(network, "network")
    network.require_weights()
    if network.config is None or network.interface is None:
        raise UsageError(f"{network.name or 'this network'} has no config: keep its modules with torch.save")
    unchanged = build(network.config, network.interface, seed=0, name=network.name).to(next(network.parameters()))
    if computation(network) != computation(unchanged):
        raise UsageError("this network was changed after it was built, and its config does not say how: use torch.save")
    folder = Path(folder).expanduser()
    if (folder / RESULT).exists():
        raise UsageError(f"{folder} holds the record of a run, which would be lost: save into another folder")
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in network.state_dict().items()}
    content = {"name": network.name, "model": network.config.record(), "interface": network.interface.record()}
    content["weights_sha256"] = digest(weights)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"  # fails, if at all, before anything is replaced
    paths.write(folder / WEIGHTS, safetensors.torch.save(weights))  # `save_file` would hide the system's reason
    paths.write(folder / CONFIG, text)
    return folder


def load(folder: Path | str) -> Network:
    """Read a network in eval mode from a `folder` that `save` wrote, or of a run; nothing in it is executed.

    Raises:
        MissingRun: There is no such folder, or a file is missing.
        DamagedFile: A file is damaged, or the weights are another network's.
    """
    folder = Path(folder).expanduser()
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise MissingRun(f"{folder} holds no network: {name} is missing")
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if "interface" not in config:  # that of a run lies beside it
            config |= json.loads((folder / RESULT).read_text(encoding="utf-8"))
        name = config.get("name") if "experiment" not in config else RUN_NAME.format_map(config)
        model, interface = _model(config["model"]), Interface.from_record(config["interface"])
        network = build(model, interface, seed=0, name=str(name or ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFile(f"the network in {folder} is damaged or none of ours ({error})") from error
    return read_weights(network, folder / WEIGHTS, config)


def read_weights(network: Network, file: Path, recorded: Mapping[str, Any]) -> Network:
    """Give a network the weights in a file, halves as float32, and set it to eval mode.

    DamagedFile: it cannot be read, or holds others than those of the `weights_sha256` that is recorded, if one is.
    """
    try:
        weights = safetensors.torch.load_file(file)
        wide = {key: value.float() if value.dtype == torch.float16 else value for key, value in weights.items()}
        if "weights_sha256" in recorded and all(digest(one) != recorded["weights_sha256"] for one in (wide, weights)):
            raise ValueError("its sha256 is not the recorded one")
        kind = next((value.dtype for value in wide.values() if value.is_floating_point()), torch.float32)
        network.to(kind).load_state_dict(wide)
    except (SafetensorError, RuntimeError, ValueError, OSError) as error:
        raise DamagedFile(f"{file} is damaged or of another network ({error}); {WAY_OUT}") from error
    return network.eval()


def _model(record: Mapping[str, Any]) -> ModelConfig:
    """`ModelConfig.record`, read back: JSON has lists for tuples."""

    def tuples(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}

    values = {CURRENT.get(key, key): value for key, value in tuples(record).items()}
    if unknown := sorted(values.keys() - {field.name for field in fields(ModelConfig)}):
        raise ValueError(f"no setting of a network is called {unknown[0]!r}: a later version may have written it")
    return ModelConfig(**{**values, "flags": tuples(values.get("flags", {}))})


def _folder(name: str) -> Path:
    if not isinstance(name, str) or name not in PRETRAINED:
        raise UsageError(f"no pretrained network is called {name!r}; {hint(str(name), PRETRAINED)}")
    shipped = paths.PACKAGE / "models" / "pretrained" / name  # in a wheel
    return shipped if shipped.is_dir() else paths.PACKAGE.parent / "data" / "runs" / PRETRAINED[name]["run"]


def pretrained(name: str) -> Network:
    """Load a small trained network that comes with the package, by a `name` of `PRETRAINED`; `card` says what it is.

    Raises:
        UsageError: There is none of that name; the message lists those that there are.

    >>> import nlstm_lab as lab
    >>> model = lab.models.pretrained("ptb_char_nlstm_logfreq")
    >>> dict(lab.probes.trace(model, "the old man").c.sizes)
    {'time': 11, 'memory': 2, 'unit': 150}
    """
    return load(_folder(name))


def card(name: str) -> str:
    """Describe `pretrained(name)` in Markdown, from its record: task, data, licence, scores, limits."""
    folder, known = _folder(name), PRETRAINED[name]
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    data = registry.get(known["data"])
    scores = [
        f"| {one['metric']} | {one['reader']} | {one['split']} | {one['value']:.3f} |"
        for one in result["metrics"]
        if one["metric"] == known["metric"] and one["split"] != "train"
    ]
    model = ", ".join(f"{key} {value}" for key, value in config["model"].items() if value not in (None, {}, []))
    megabytes, minutes = (folder / WEIGHTS).stat().st_size / 1e6, result["seconds"] / 60
    training = f"{RUN_NAME.format_map(result)}, best epoch {result['best_epoch']}, {minutes:.0f} minutes"
    lines = [
        f"# {name}\n\n{known['task']}\n",
        f"- **Network**: {model}; {result['parameters']:,} parameters, {megabytes:.1f} MB",
        f"- **Training**: {training}, commit {result['commit'][:12]}",
        f"- **Data**: {data.title}: {data.origin.replace('<', '&lt;')} ({data.citation})",
        f"- **Licence**: of the weights MIT, as the package; of the data: {data.licence}",
        f"- **Limits**: {known['limits']}\n",
        "| metric | read in | split | value |\n|---|---|---|---|",
    ]
    return "\n".join([*lines, *scores, ""])
