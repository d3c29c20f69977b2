"""What a comparison measures of each finished model, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.corpus import Corpus, Split
from bertsmith.engine.device import Device
from bertsmith.examples.pretraining import document_sentences
from bertsmith.foundation.random_streams import random_stream
from bertsmith.inference.direction import influence, reach
from bertsmith.inference.features import layer_means
from bertsmith.inference.generate import beginning, generate
from bertsmith.inference.prompting import label_by_prompt
from bertsmith.inference.running import TokenWindow
from bertsmith.inference.token_scores import perplexity, token_log_probabilities
from bertsmith.model.heads import Model
from bertsmith.recipes.comparison.task import DownstreamTask
from bertsmith.tokenization.readable import readable_tokens
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.training.layer_probe import probe_layers

_SEED = 15
"""The tokens that are scored and the sentence that is looked at are the same whatever the run's seed."""
_SCORED_TOKENS, _SCORED_SEQUENCES = 1000, 200
_FEWEST_SHOWN, _MOST_SHOWN = 6, 14
_PROMPT_TOKENS = 5
_LONGER = 4
_TEMPERATURE, _TOP_K, _NEW_TOKENS = 0.8, 40, 40


@dataclass(frozen=True)
class Subject:
    """A finished model with all that is needed to measure it. Everything runs in fp32, whatever it was trained in."""

    model: Model
    tokenizer: Tokenizer
    corpus: Corpus
    device: str
    max_length: int
    """Tokens of its training sequences."""

    @property
    def exact(self) -> Device:
        """Where it runs."""
        return Device(self.device, "fp32")

    @property
    def is_elmo(self) -> bool:
        """Whether it is the one of two directions."""
        return self.model.config.encoder.family == "elmo"


def measure_prediction(subject: Subject) -> dict[str, Any]:
    """Perplexity on the same validation tokens for every kind of model, special ones left out."""
    sequence_format = SequenceFormat.of(subject.tokenizer)
    windows, places = scored_tokens(subject.corpus.split("validation"), sequence_format, subject.max_length)
    scores = token_log_probabilities(
        subject.model, windows, places, mask_id=sequence_format.mask_id, device=subject.exact
    )
    return {"perplexity": perplexity(scores), "loss": float(-scores.mean()), "scored_tokens": len(scores)}


def scored_tokens(
    split: Split, sequence_format: SequenceFormat, max_length: int
) -> tuple[list[TokenWindow], list[Int[np.ndarray, " _"]]]:
    """Validation sequences, and the places of the tokens in them that are scored: a fixed draw."""
    stream = random_stream(_SEED, "scored tokens")
    examples = document_sentences(split, max_length - sequence_format.num_special(pairs=False))
    rows = np.sort(stream.permutation(len(examples))[:_SCORED_SEQUENCES])
    framed = sequence_format.assemble(split, examples, rows)
    chosen = np.zeros(len(framed.token_ids), bool)
    chosen[stream.permutation(np.flatnonzero(framed.is_text))[:_SCORED_TOKENS]] = True
    bounds = framed.sequence_starts
    windows = [
        TokenWindow(framed.token_ids[start:end], framed.segment_ids[start:end])
        for start, end in pairwise(bounds.tolist())
    ]
    places = [np.flatnonzero(chosen[start:end]) for start, end in pairwise(bounds.tolist())]
    return windows, places


def measure_direction(subject: Subject) -> dict[str, Any]:
    """Which vectors move when a word of a validation sentence is replaced; for an ELMo, in each direction too."""
    token_ids = _sentence(subject)
    counts = subject.corpus.split("train").token_counts
    replacement = next(int(number) for number in np.argsort(-counts, kind="stable") if number not in token_ids)

    def moved(columns: slice = slice(None)) -> np.ndarray:
        found = influence(subject.model, token_ids, replacement=replacement, device=subject.exact, columns=columns)
        # The special tokens at both ends are left out.
        return found[1:-1, 1:-1]

    whole = moved()
    values: dict[str, Any] = {
        "tokens": _readable(subject.tokenizer, token_ids[1:-1]),
        "moved": np.round(whole, 5).tolist(),
        **reach(whole),
    }
    if subject.is_elmo:
        width = subject.model.config.encoder.embedding_width
        values["forward_half"] = reach(moved(slice(width)))
        values["backward_half"] = reach(moved(slice(width, None)))
    return values


def _readable(tokenizer: Tokenizer, token_ids: Int[np.ndarray, " tokens"]) -> list[str]:
    """Tokens as people read them; as the vocabulary has them where their text gives others, as an unknown one does."""
    text = tokenizer.decode(token_ids)
    encoding = tokenizer.encode(text)
    is_text = encoding.sequence_ids == 0
    if not np.array_equal(encoding.token_ids[is_text], token_ids):
        return tokenizer.tokens(token_ids)
    tokens = readable_tokens(tokenizer, encoding, text)
    return [token for token, stands in zip(tokens, is_text, strict=True) if stands]


def _sentence(subject: Subject) -> Int[np.ndarray, " tokens"]:
    """A validation sentence between its special tokens, short enough to be shown."""
    split = subject.corpus.split("validation")
    starts = np.asarray(split.sentence_starts)
    lengths = np.diff(starts)
    fitting = np.flatnonzero((lengths >= _FEWEST_SHOWN) & (lengths <= _MOST_SHOWN))
    if len(fitting):
        chosen = int(random_stream(_SEED, "shown").choice(fitting))
        ids = split.tokens(int(starts[chosen]), int(starts[chosen + 1]))
    else:
        ids = split.tokens(0, min(_MOST_SHOWN, split.num_tokens))
    sequence_format = SequenceFormat.of(subject.tokenizer)
    return np.concatenate([[sequence_format.first_id], ids, [sequence_format.separator_id]])


def measure_context(subject: Subject) -> dict[str, Any]:
    """How long a sequence the model takes: its positions, or any length where it has none; then it is tried."""
    if not subject.is_elmo:
        return {"longest": subject.model.config.encoder.num_positions}
    length = _LONGER * subject.max_length
    ids = np.resize(_sentence(subject), length)
    window = TokenWindow(ids, np.zeros_like(ids))
    (vector,) = layer_means(subject.model, [window], subject.exact)[-1]
    return {"longest": None, "tried": length, "finite": bool(torch.isfinite(vector).all())}


def measure_frozen(subject: Subject, task: DownstreamTask) -> dict[str, Any]:
    """The task by a linear classifier over a learned mix of layers, the encoder left as it is."""
    features = {
        name: layer_means(subject.model, _windows(subject, [text for text, _ in rows]), subject.exact)
        for name, rows in (("train", task.train), ("test", task.test))
    }
    found = probe_layers(
        (features["train"], torch.tensor([label for _, label in task.train])),
        (features["test"], torch.tensor([label for _, label in task.test])),
        num_labels=len(task.labels),
    )
    return {"accuracy": found.accuracy, "layer_weights": [round(weight, 4) for weight in found.layer_weights]}


def _windows(subject: Subject, texts: Sequence[str]) -> list[TokenWindow]:
    encodings = subject.tokenizer.encode_batch(list(texts), max_length=subject.max_length)
    return [TokenWindow(encoding.token_ids, encoding.segment_ids) for encoding in encodings]


def measure_prompt(subject: Subject, task: DownstreamTask, template: str) -> dict[str, Any]:
    """The task by prompting alone: no training text is looked at."""
    texts = [text for text, _ in task.test]
    found = label_by_prompt(
        subject.model, subject.tokenizer, texts, task.labels, template=template, device=subject.exact
    )
    right = [guess == label for guess, (_, label) in zip(found, task.test, strict=True)]
    return {"accuracy": float(np.mean(right)), "template": template}


def measure_writing(subject: Subject, prompt: str | None, seed: int) -> dict[str, Any]:
    """What the model writes, drawn from its likelier tokens."""
    if prompt is None:
        prompt = beginning(subject.tokenizer, _sentence(subject)[1:-1], _PROMPT_TOKENS)
    found = generate(
        subject.model,
        subject.tokenizer,
        prompt,
        device=subject.exact,
        max_new_tokens=_NEW_TOKENS,
        temperature=_TEMPERATURE,
        top_k=_TOP_K,
        seed=seed,
    )
    return {
        "prompt": prompt,
        "continuation": found.continuation,
        "text": found.text,
        "ended": found.ended,
        "temperature": _TEMPERATURE,
        "top_k": _TOP_K,
    }
