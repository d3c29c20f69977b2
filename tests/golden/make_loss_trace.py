"""Make the golden loss trace anew: python tests/golden/make_loss_trace.py"""

import json
import tempfile
from pathlib import Path

import torch

from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.prepare import prepare_corpus
from bertsmith.engine.device import Device
from bertsmith.examples.masking import MaskingConfig
from bertsmith.foundation.random_streams import random_stream
from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model, preset
from bertsmith.objectives.report import add_counts
from bertsmith.recipes.pretraining.data import OBJECTIVES, PretrainingData, pretraining_data
from bertsmith.text.documents import Document
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.training import train_tokenizer
from bertsmith.training.config import OptimizerConfig, ScheduleConfig, TrainingConfig
from bertsmith.training.schedule import rate_share
from bertsmith.training.step import TrainState, new_optimizer, train_step

FOLDER = Path(__file__).parent
TRACE = FOLDER / "loss_trace.json"
TRACED_OBJECTIVES = ("mlm", "mlm+nsp")
_STEPS = 30
_TRAINING = TrainingConfig(
    batch_tokens=300,
    micro_batch_tokens=170,
    optimizer=OptimizerConfig(learning_rate=3e-3),
    schedule=ScheduleConfig(shape="cosine", warmup_share=0.2),
)


def loss_trace(objective: str) -> dict[str, list[float]]:
    """Losses by step: of all terms together, and of each."""
    with tempfile.TemporaryDirectory() as folder:
        data, vocab_size = _data(Path(folder) / "corpus", objective)
        return _train(_model(vocab_size, pairs="nsp" in objective), data, objective)


def _data(folder: Path, objective: str) -> tuple[PretrainingData, int]:
    texts = (FOLDER / "text.txt").read_text(encoding="utf-8").split("\n\n")
    tokenizer = train_tokenizer(lambda: texts, TokenizerConfig(vocab_size=300))
    documents = [Document(text=text, source="text.txt") for text in texts]
    corpus = prepare_corpus(documents, tokenizer, folder, CorpusConfig(validation_fraction=0.2, workers=1), sources=[])
    data = pretraining_data(
        corpus,
        SequenceFormat.of(tokenizer),
        objective=objective,
        max_length=48,
        masking=MaskingConfig(),
        training=_TRAINING,
    )
    return data, tokenizer.vocab_size


def _model(vocab_size: int, *, pairs: bool) -> Model:
    encoder = preset(
        "bert-toy",
        vocab_size=vocab_size,
        num_hidden_layers=2,
        hidden_size=32,
        intermediate_size=64,
        max_position_embeddings=48,
    )
    config = ModelConfig(encoder=encoder, heads=HeadsConfig(pooler=pairs, next_sentence=pairs))
    model = new_model(config, seed=0).double().train()
    # torch's normal draws differ between processors in the last bits of fp32; numpy's do not.
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim >= 2:
                draws = random_stream(0, "golden", name).standard_normal(tuple(weight.shape))
                weight.copy_(torch.from_numpy(0.05 * draws))
    return model


def _train(model: Model, data: PretrainingData, name: str) -> dict[str, list[float]]:
    state = TrainState(model, new_optimizer(model, _TRAINING.optimizer))
    objective = OBJECTIVES[name]
    trace: dict[str, list[float]] = {"loss": [], **{term: [] for term in objective.terms}}
    for step in range(_STEPS):
        report = train_step(
            state,
            data.train.micro_batches(step),
            objective,
            device=Device("cpu", "fp32"),
            learning_rate=_TRAINING.optimizer.learning_rate * rate_share(_TRAINING.schedule, step, _STEPS),
            clip_norm=_TRAINING.optimizer.clip_norm,
            seed=0,
        )
        counts = add_counts(part.counts for part in report.parts)
        for term in objective.terms:
            trace[term].append(sum(float(part.totals[term]) for part in report.parts) / counts[term])
        trace["loss"].append(sum(trace[term][-1] for term in objective.terms))
    return trace


if __name__ == "__main__":
    TRACE.write_text(
        json.dumps({objective: loss_trace(objective) for objective in TRACED_OBJECTIVES}, indent=1) + "\n",
        encoding="utf-8",
    )
