"""Small questions about texts, as SQuAD writes them, and a model that answers, made from a seed."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertsmith.model import HeadsConfig, Model, ModelConfig, new_model
from bertsmith.model.config import AnsweringHead
from bertsmith.text.questions import GoldAnswer, Question
from made_corpora import WORDS, made_model, made_tokenizer


def squad(*paragraphs: tuple[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """A document of SQuAD's form: contexts, each with its questions."""
    parts = [{"context": context, "qas": list(questions)} for context, questions in paragraphs]
    return {"version": "v2.0", "data": [{"title": "made", "paragraphs": parts}]}


def asked(question: str, *answers: tuple[str, int], name: str = "q", **more: Any) -> dict[str, Any]:
    """A question of SQuAD's form."""
    written = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": name, "question": question, "answers": written} | more


def write_squad(path: Path, document: Mapping[str, Any]) -> Path:
    """A .json file."""
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    return path


def question_of(context: str, *answers: str, question: str = "The old boat?") -> Question:
    """A question whose answers stand where they are first found in the context."""
    golds = [GoldAnswer(text, context.index(text), context.index(text) + len(text)) for text in answers]
    return Question("question 1", "q", question, context, tuple(golds))


def made_questions(count: int, *, words: tuple[int, int] = (6, 30), none: float = 0.0, seed: int = 0) -> dict[str, Any]:
    """Questions whose answer is the word behind the one asked for; a share of them asks for one that is not there."""
    stream = random.Random(seed)
    paragraphs: list[tuple[str, list[dict[str, Any]]]] = []
    for number in range(count):
        text = stream.sample(WORDS, k=min(stream.randint(*words), len(WORDS)))
        context = f"{' '.join(text)} {number}"
        if stream.random() < none:
            missing = stream.choice([word for word in WORDS if word not in text])
            paragraphs.append((context, [asked(missing, name=f"q{number}", is_impossible=True)]))
            continue
        place = stream.randrange(len(text) - 1)
        start = sum(len(word) + 1 for word in text[: place + 1])
        paragraphs.append((context, [asked(text[place], (text[place + 1], start), name=f"q{number}")]))
    return squad(*paragraphs)


def made_sign_questions(count: int, *, seed: int = 0) -> dict[str, Any]:
    """Questions whose answer is the one word of the text that is rain, snow or bread; a third of the texts has none.

    Each text has a number, so that no two are equal.
    """
    stream = random.Random(seed)
    signs = ("rain", "snow", "bread")
    others = [word for word in WORDS if word not in signs]
    paragraphs: list[tuple[str, list[dict[str, Any]]]] = []
    for number in range(count):
        before, behind = (" ".join(stream.choices(others, k=stream.randint(1, 12))) for _ in range(2))
        if number % 3 == 0:
            paragraphs.append((f"{before} {behind} {number}", [asked("wind", name=f"q{number}")]))
        else:
            sign = stream.choice(signs)
            answer = (sign, len(before) + 1)
            paragraphs.append((f"{before} {sign} {behind} {number}", [asked("wind", answer, name=f"q{number}")]))
    return squad(*paragraphs)


def made_answerer(
    head: AnsweringHead | None = None, *, positions: int = 64, algorithm: str = "wordpiece", spread: float = 0.3
) -> Model:
    """A model with fresh weights that are spread widely, so that its scores differ visibly."""
    size = made_tokenizer(algorithm).vocab_size
    encoder = made_model(size, positions=positions, spread=spread).config.encoder
    heads = HeadsConfig(masked_language_model=False, task="answer", answering=head, classifier_dropout=0.0)
    return new_model(ModelConfig(encoder=encoder, heads=heads), seed=0)
