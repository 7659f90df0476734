"""Instruments: arrays and frames in and out, no plots.

What follows works for every network here and for your own, such as one that a plain training script has left:

>>> import torch, nlstm_lab as lab
>>> rnn = torch.nn.LSTM(8, 16, 2, batch_first=True)
>>> embedding, readout = torch.nn.Embedding(27, 8), torch.nn.Linear(16, 27)
>>> letters = " abcdefghijklmnopqrstuvwxyz"
>>> model = lab.models.wrap(rnn, embedding=embedding, readout=readout, vocabulary=letters)

Read with edits: any state, gate or pre-activation, at any step. Edits may be functions of your own.

>>> edits = {("layer 2 before", 4): lab.probes.zero, ("layer 1 f", range(5, 9), (3, 7)): lambda f: f / 2}
>>> read = lab.probes.run(model, "the cat sat", edits=edits, keep=["c", "h"])
>>> read.logits.shape, sorted(read.trace.data_vars)
(torch.Size([11, 27]), ['c', 'h'])

Several texts, of unequal lengths, in one trace; likewise in `run` and `lens`, and several pairs in `patch`.

>>> dict(lab.probes.trace(model, ["the cat sat", "a dog"]).h.sizes)
{'text': 2, 'time': 11, 'layer': 2, 'unit': 16}

A patch map: what each memory of the first reading, put into the second, restores of a preference.

>>> found = lab.probes.patch(model, ("the cats a", "the cat a", "r", "t"))
>>> dict(found.patched.sizes), found.symbol.values.tolist()
({'memory': 4, 'time': 2}, [' ', 'a'])

A lens: what each memory would predict now and some characters later, by a linear map; of edited readings, too.

>>> lens = lab.probes.lens(model, "the cat sat on the mat " * 20, ahead=(0, 3), burn_in=20)
>>> dict(lens.read(read.trace).sizes)
{'memory': 4, 'ahead': 2, 'time': 11, 'vocabulary': 27}

Fixed points: where a network without boundaries or a clock rests while it reads spaces, and how slowly it comes there.

>>> resting = lab.probes.fixed_points(model, "the cat sat", constant=" ", starts=2).isel(point=0)
>>> resting.kind.item(), bool(resting.timescale.max() > 1)
('fixed', True)

Attribution: which characters, or which units of a memory, one logit depends on (captum).

>>> found = lab.probes.attribution(model, "the cat sat", "e", baseline=" ")
>>> found.dims, found.attrs["missing"] < 0.01
(('time',), True)
>>> dict(lab.probes.attribution(model, "the cat sat", "e", memory="layer 1").sizes)
{'time': 11, 'unit': 16}

What these arguments mean wherever they are taken:

    model: The network that reads (`run.model()`, or `lab.models.wrap` of your own).
    text: A string, codes [T], or an excerpt (`lab.datasets.Excerpt`), of which there may be records.
    texts: Several of them.
    trace: `lab.probes.trace(model, text)`.
    traced: `lab.probes.trace(model, text)`.
    seed: Of the random generator.
    burn_in: Steps at the start that are left out.
    moments: Steps at which a state is changed, or how many.
    distance: Predictions after a change that are compared.
    units: Hidden units; None for all.
    memory: The name of a memory (inner, layer 2 outer, ...), or of a layer's h.
    watch: Called with the share that is done.
    run: The run's name, as figures cite it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
