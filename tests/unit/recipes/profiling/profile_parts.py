"""Text, a corpus, an encoder and rows of each task, all small, and the settings that go with them."""

import json
import random
from pathlib import Path
from typing import Any

from bertsmith.engine.rates import MachineRates
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.pretraining.options import PretrainConfig
from made_corpora import WORDS, made_corpus, made_texts
from made_questions import made_questions, write_squad
from made_tasks import made_encoder, made_rows, write_rows

RATES = MachineRates(operations_per_second=1e11, bf16_operations_per_second=4e11, bytes_per_second=1e10)
RUNTIME = {"device": "cpu", "precision": "fp32", "threads": 1}
SIZES = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
TASKS = ("classify", "regress", "multilabel", "tag", "answer", "choose", "embed")


def fill_work(folder: Path) -> Path:
    """Put all of it into a folder."""
    (folder / "text.txt").write_text("\n\n".join(made_texts(60)), encoding="utf-8")
    made_corpus(folder / "corpus", made_texts(60), held_out=0.1)
    made_encoder(folder / "encoder")
    stream = random.Random(0)
    rows = made_rows({"wet": 30, "dry": 30})
    write_rows(folder / "classify.csv", rows)
    write_rows(folder / "regress.csv", [{"text": row["text"], "label": number % 7} for number, row in enumerate(rows)])
    labels = [["wet"], ["dry", "cold"], ["cold"]]
    write_rows(
        folder / "multilabel.jsonl",
        [{"text": row["text"], "labels": labels[number % 3]} for number, row in enumerate(rows)],
    )
    sentences = ["\n".join(f"{word} {stream.choice(['O', 'B-X'])}" for word in row["text"].split()) for row in rows]
    (folder / "tag.conll").write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
    write_squad(folder / "answer.json", made_questions(40))
    choices = [
        {"context": row["text"], "choices": stream.sample(WORDS, 3), "label": number % 3}
        for number, row in enumerate(rows)
    ]
    (folder / "choose.jsonl").write_text("\n".join(map(json.dumps, choices)) + "\n", encoding="utf-8")
    write_rows(
        folder / "embed.csv",
        [{"anchor": row["text"], "positive": " ".join(stream.sample(WORDS, 5))} for row in rows],
    )
    return folder


def pretraining(source: Path, **more: Any) -> PretrainConfig:
    """Of a tiny model on small batches; tables of settings are merged."""
    values: dict[str, Any] = {
        "sources": [str(source)],
        "max_length": 32,
        "model": SIZES,
        "corpus": {"workers": 1} if source.suffix == ".txt" else {},
        "training": {"batch_tokens": 256},
        "runtime": RUNTIME,
    }
    for name, value in more.items():
        values[name] = values.get(name, {}) | value if isinstance(value, dict) else value
    return PretrainConfig.parse(values, where="a test")


def finetuning(work: Path, task: str, **more: Any) -> FinetuneConfig:
    """Of the small encoder, for a task."""
    (train,) = work.glob(f"{task}.*")
    values = {"task": task, "train": str(train), "model": str(work / "encoder"), "runtime": RUNTIME}
    return FinetuneConfig.parse(values | more, where="a test")
