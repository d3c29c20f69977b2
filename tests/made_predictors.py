"""A predictor of each task with fresh weights, items for it, and rows that hold them."""

from functools import cache
from pathlib import Path
from typing import Any

from bertsmith.engine.device import Device
from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.files import new_folder
from bertsmith.inference.answer import AnswerPredictor
from bertsmith.inference.choose import ChoosePredictor
from bertsmith.inference.classify import ClassifyPredictor
from bertsmith.inference.embed import EmbedPredictor
from bertsmith.inference.multilabel import MultilabelPredictor
from bertsmith.inference.predictor import Predictor
from bertsmith.inference.regress import RegressPredictor
from bertsmith.inference.tag import TagPredictor
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model
from made_corpora import made_model, made_texts, made_tokenizer

_KINDS: dict[str, Any] = {
    "classify": ClassifyPredictor,
    "multilabel": MultilabelPredictor,
    "regress": RegressPredictor,
    "tag": TagPredictor,
    "answer": AnswerPredictor,
    "choose": ChoosePredictor,
    "embed": EmbedPredictor,
}
TASKS = tuple(_KINDS)
_LABELS = {"classify": ("no", "yes"), "multilabel": ("calm", "dry", "wet"), "tag": ("B-ACT", "I-ACT", "O")}
_WITH_POOLER = ("classify", "multilabel", "regress", "choose")


@cache
def made_task_model(task: str) -> Model:
    """With weights that are spread widely, so that its outputs differ visibly."""
    encoder = made_model(made_tokenizer().vocab_size, spread=0.3).config.encoder
    heads = {"masked_language_model": False, "task": task, "labels": _LABELS.get(task, ())}
    heads |= {"pooler": task in _WITH_POOLER, "classifier_dropout": 0.0}
    return new_model(ModelConfig(encoder=encoder, heads=HeadsConfig.parse(heads, where="a test")), seed=0)


@cache
def made_predictor(task: str) -> Predictor[Any, Any, Any]:
    """What a model of the task predicts with."""
    return _KINDS[task](TorchEngine(made_task_model(task), Device("cpu", "fp32")), made_tokenizer())


def made_task_folder(task: str, folder: Path) -> Path:
    """The same model as a folder."""
    with new_folder(folder, seal={"kind": "model"}) as temporary:
        write_model(temporary, made_task_model(task), made_tokenizer())
    return folder


def made_items(task: str, count: int) -> list[Any]:
    """What the predictor takes."""
    texts = [text.replace(",", "") for text in made_texts(count, sentences=(1, 3))]
    match task:
        case "answer":
            return [(f"who walked {number}?", text) for number, text in enumerate(texts)]
        case "choose":
            return [(text, ("the rain", "a boat", "nobody")[: 2 + number % 2]) for number, text in enumerate(texts)]
        case _:
            return texts


def as_rows(task: str, items: list[Any]) -> list[dict[str, Any]]:
    """The rows of a .jsonl file that hold the items."""
    match task:
        case "answer":
            return [{"question": question, "context": context} for question, context in items]
        case "choose":
            return [{"text": text, "choices": list(choices)} for text, choices in items]
        case _:
            return [{"text": text} for text in items]
