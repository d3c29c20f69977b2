"""What else could be in the recipe for few tokens: each beside the recipe as it is, after equally many tokens.

    python -m benchmarks.recipe_trials CORPUS --held-out LINES.txt --name NAME [--sizes 2x128 4x128] [--tokens 4.4e6]

CORPUS is prepared text, such as the one that `benchmarks/fewer_tokens.py` leaves in its folder of work. The trials are
those that `bertsmith pretrain` has no setting for, and untied embeddings; they are trained by a loop of their own from
the product's parts. A model is scored by what a hidden character costs (`benchmarks/hidden_words.py`) and by its
validation loss.
"""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fewer_tokens import sizes_of
from benchmarks.hidden_words import HiddenWord, hidden_words, nats_of_model
from benchmarks.measuring import write_part
from bertsmith.batches.batch import Batch
from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.corpus import Corpus
from bertsmith.engine.device import Device, choose_device
from bertsmith.engine.evaluation import evaluate
from bertsmith.engine.memory import keep_freed_memory
from bertsmith.model.heads import Model
from bertsmith.objectives.masked_language_model import TERM, MaskedLanguageModel, masked_tokens_report
from bertsmith.objectives.report import LossReport
from bertsmith.recipes.pretraining.begin import data_of_run, first_state
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_defaults import with_start_defaults
from bertsmith.tokenization.tokenizer import Tokenizer
from bertsmith.training.schedule import rate_share
from bertsmith.training.step import TrainState, train_step

_VALIDATION_TOKENS = 200_000


@dataclass(frozen=True)
class Trial:
    """In what a training differs from the recipe."""

    settings: dict[str, Any] = field(default_factory=dict)
    """By section and name."""
    batch_ramp: tuple[tuple[float, int], ...] = ()
    """Until which share of the tokens, batches of how many."""
    length_ramp: tuple[tuple[float, int], ...] = ()
    """Until which share of the tokens, sequences of at most how many."""
    squared_normalizer: float = 0.0
    """Weight of the square of the logits' logarithmic sum, the z-loss (Chowdhery et al. 2022, section 5)."""
    averaging: float = 0.0
    """What a running mean of the weights keeps of itself at a step; of 0, it is the weights as they are."""
    falls: bool = True
    """Whether the rate falls to 0."""


TRIALS = {
    "recipe": Trial(),
    "embeddings not tied": Trial({"model": {"tie_embeddings": False}}),
    "z-loss 1e-4": Trial(squared_normalizer=1e-4),
    "batches of 1,024 until 10 %, of 2,048 until 30 %": Trial(batch_ramp=((0.1, 1024), (0.3, 2048))),
    "sequences of 32 until 30 %, of 64 until 60 %": Trial(length_ramp=((0.3, 32), (0.6, 64))),
    "weights averaged (0.99)": Trial(averaging=0.99),
    "rate stays level": Trial(falls=False),
    "rate stays level, weights averaged (0.99)": Trial(averaging=0.99, falls=False),
}


@dataclass(frozen=True)
class _WithNormalizer(MaskedLanguageModel):
    weight: float = 0.0

    def report(self, model: Model, batch: Batch, *, with_hits: bool) -> LossReport:
        hidden, head = model.head_input(batch.packed), model.masked_language_model
        found = masked_tokens_report(model, hidden, batch, with_hits=with_hits)
        assert head is not None
        normalizers = head(hidden[batch.target_positions[batch.target_ids >= 0]]).float().logsumexp(-1)
        total = found.totals[TERM] + self.weight * normalizers.square().sum()
        return LossReport({TERM: total}, found.counts, found.hits)


def _config(corpus: Path, size: str, trial: Trial) -> PretrainConfig:
    model = {name.removeprefix("model."): value for name, value in sizes_of("modern-toy", size).items()}
    values: dict[str, Any] = {"sources": (str(corpus),), "model": {"start": "modern-toy", **model}}
    for section, settings in trial.settings.items():
        values[section] = values.get(section, {}) | settings
    return with_start_defaults(PretrainConfig.parse(values, where="the trial"))


def _at(ramp: Sequence[tuple[float, int]], share: float, last: int) -> int:
    return next((value for until, value in ramp if share < until), last)


def _stages(config: PretrainConfig, trial: Trial) -> Iterator[tuple[float, int, int]]:
    """Until which share of the tokens, sequences of at most how many tokens, and batches of how many."""
    ends = sorted({until for until, _ in (*trial.batch_ramp, *trial.length_ramp)} | {1.0})
    for begin, end in itertools.pairwise((0.0, *ends)):
        length = _at(trial.length_ramp, begin, config.max_length)
        yield end, length, _at(trial.batch_ramp, begin, config.training.batch_tokens)


def train(
    config: PretrainConfig, trial: Trial, corpus: Corpus, tokenizer: Tokenizer, device: Device, tokens: int
) -> TrainState:
    """A model after so many tokens."""
    state = first_state(config, corpus, tokenizer, device, print)
    weights = [weight.detach() for weight in state.model.parameters()]
    mean = [weight.clone() for weight in weights]
    objective = _WithNormalizer(trial.squared_normalizer) if trial.squared_normalizer else MaskedLanguageModel()
    for end, length, batch_tokens in _stages(config, trial):
        training = config.training.model_copy(update={"batch_tokens": batch_tokens})
        stage = config.model_copy(update={"max_length": length, "training": training})
        loader = data_of_run(stage, corpus, SequenceFormat.of(tokenizer)).train
        while state.tokens < end * tokens:
            share = rate_share(training.schedule, state.tokens, tokens)
            if not trial.falls and state.tokens > training.schedule.warmup_share * tokens:
                share = 1.0
            train_step(
                state,
                loader.micro_batches(state.step),
                objective,
                device=device,
                learning_rate=training.optimizer.learning_rate * share,
                clip_norm=training.optimizer.clip_norm,
                seed=training.seed,
            )
            for average, weight in zip(mean, weights, strict=True):
                average.lerp_(weight, 1 - trial.averaging)
    for average, weight in zip(mean, weights, strict=True):
        weight.copy_(average)
    return state


def score(
    state: TrainState, config: PretrainConfig, corpus: Corpus, tokenizer: Tokenizer, words: list[HiddenWord]
) -> dict[str, float]:
    """What a model is worth, in fp32."""
    validation = data_of_run(config, corpus, SequenceFormat.of(tokenizer)).validation_batches(_VALIDATION_TOKENS)
    loss = evaluate(state.model, MaskedLanguageModel(), validation, choose_device("cpu", "fp32"))["loss"]
    cost = nats_of_model(state.model, tokenizer, words)
    return {"steps": state.step, "loss": round(loss, 4), "nats_a_hidden_character": round(cost, 4)}


def main() -> None:
    """Run all trials, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--name", required=True, help="Of the text, in the JSON.")
    parser.add_argument("--sizes", nargs="+", default=["2x128"])
    parser.add_argument("--tokens", type=float, default=4.4e6)
    args = parser.parse_args()
    keep_freed_memory()
    corpus = Corpus.open(args.corpus)
    tokenizer, device = Tokenizer.from_folder(args.corpus / "tokenizer"), choose_device("cpu")
    words = hidden_words(args.held_out.read_text(encoding="utf-8").splitlines())
    found: dict[str, dict[str, Any]] = {}
    for size, (name, trial) in itertools.product(args.sizes, TRIALS.items()):
        config = _config(args.corpus, size, trial)
        state = train(config, trial, corpus, tokenizer, device, round(args.tokens))
        found.setdefault(size, {})[name] = score(state, config, corpus, tokenizer, words)
        print(size, name, found[size][name], flush=True)
    write_part("recipe_trials", args.name, {"tokens": args.tokens, "sizes": found})


if __name__ == "__main__":
    main()
