"""A word language model as it is usually trained with torch: carried and detached states, dropout, clipped gradients, a
learning rate that falls, the best model saved whole and loaded with `weights_only`.

Run as a script it prints the perplexities; the line that makes `self.rnn` is all that names a recurrent network.
"""

import io
import math
import random

import torch
from torch import nn

import nlstm_lab as lab  # noqa: F401  (for whoever changes the line)

WORDS = 30
EMBEDDED, HIDDEN, LAYERS, DROPOUT = 24, 32, 2, 0.1
BATCH, LENGTH, EPOCHS, RATE, CLIP = 20, 12, 3, 0.02, 0.5


class WordModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(DROPOUT)
        self.encoder = nn.Embedding(WORDS, EMBEDDED)
        self.rnn = nn.LSTM(EMBEDDED, HIDDEN, LAYERS, dropout=DROPOUT)
        self.decoder = nn.Linear(HIDDEN, WORDS)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, words, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(words)), hidden)
        return self.decoder(self.drop(output)), hidden

    def init_hidden(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(LAYERS, batch, HIDDEN), weight.new_zeros(LAYERS, batch, HIDDEN)


def detached(hidden):
    return hidden.detach() if isinstance(hidden, torch.Tensor) else tuple(map(detached, hidden))


def text(words, seed):
    """Words of which each is one of two that may follow the one before."""
    chance, found = random.Random(seed), [0]
    for _ in range(words - 1):
        found.append((found[-1] * 7 + chance.choice((3, 11))) % WORDS)
    return torch.tensor(found)


def batchify(data, batch):
    length = len(data) // batch
    return data[: length * batch].view(batch, length).t().contiguous()


def perplexity(model, data, optimizer=None):
    """Over the text, carrying the state; with an optimizer, training on the way."""
    model.train(optimizer is not None)
    hidden, total = model.init_hidden(data.shape[1]), 0.0
    for start in range(0, len(data) - 1, LENGTH):
        piece = data[start : start + LENGTH + 1]
        hidden = detached(hidden)
        output, hidden = model(piece[:-1], hidden)
        loss = nn.functional.cross_entropy(output.flatten(0, 1), piece[1:].flatten())
        total += float(loss.detach()) * (len(piece) - 1)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
    return math.exp(total / (len(data) - 1))


def main():
    torch.manual_seed(1)
    train, valid = batchify(text(6000, 1), BATCH), batchify(text(1000, 2), BATCH)
    model, best, saved = WordModel(), math.inf, io.BytesIO()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    for _ in range(EPOCHS):
        perplexity(model, train, optimizer)
        with torch.no_grad():
            now = perplexity(model, valid)
        if now < best:
            best, saved = now, io.BytesIO()
            torch.save(model, saved)
        else:
            optimizer.param_groups[0]["lr"] /= 4
    saved.seek(0)
    with torch.serialization.safe_globals([WordModel, nn.Dropout, nn.Embedding, nn.Linear, type(model.rnn)]):
        loaded = torch.load(saved, weights_only=True)
    loaded.rnn.flatten_parameters()
    with torch.no_grad():
        again = perplexity(loaded, valid)
    print(f"perplexity {best:.3f}, loaded {again:.3f}, of {WORDS} words")
    return best, again


if __name__ == "__main__":
    main()
