"""A label for each word: named entities, or parts of speech."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bertsmith.examples.classification import balanced_weights
from bertsmith.examples.multilabel import label_strata
from bertsmith.examples.table_config import OptionNames, TableConfig
from bertsmith.examples.tag_schemes import scheme_of_labels
from bertsmith.examples.tagged_rows import read_tagged
from bertsmith.examples.tagging import (
    TaggedExamples,
    label_presence,
    label_without_pieces,
    tag_counts,
    tag_ids,
    tag_labels,
    tag_notes,
    tagged_examples,
)
from bertsmith.examples.task_examples import LongTexts, TaskExamples, refuse_long_texts
from bertsmith.inference.engine import Engine
from bertsmith.inference.tag import TagPredictor
from bertsmith.model.config import HeadsConfig
from bertsmith.model.heads import Model
from bertsmith.objectives.classification import class_details, label_loss, label_scores
from bertsmith.objectives.softmax import softmax
from bertsmith.objectives.tagging import (
    Tagging,
    count_entities,
    entity_details,
    entity_scores,
)
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.finetuning.task import MOST_ERRORS, Better, TaskRows
from bertsmith.recipes.finetuning.tasks.worst_errors import worst_of
from bertsmith.text.tagged import TaggedSentence
from bertsmith.tokenization.tokenizer import Tokenizer

_ENTITY_SCORES = ("f1", "micro_precision", "micro_recall", "macro_f1", "macro_precision", "macro_recall", "strict_f1")
_SHOWN_AROUND = 150
"""Characters of a sentence that are shown to each side of a wrong word."""


class Tag:
    """See the module."""

    name = "tag"

    def metrics(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Better]:
        """F1 of entities first, where labels write some, and else the accuracy of words."""
        of_words, of_entities = ("accuracy", "macro_f1"), (*_ENTITY_SCORES, "accuracy")
        names = of_words if scheme_of_labels(labels) is None else of_entities
        return {**dict.fromkeys(names, "higher"), "loss": "lower"}

    def read(self, path: Path, data: TableConfig, *, like: TaskRows | None, options: OptionNames) -> TaskRows:
        """Read sentences out of a file of columns or a table of lists."""
        table = read_tagged(path, data, like=None if like is None else like.layout, options=options)
        return TaskRows(path, table.sentences, str(table.columns), table.notes, table.columns)

    def labels(self, rows: TaskRows) -> tuple[str, ...]:
        """Every label, ordered by name."""
        return tag_labels(rows.items, rows.path)

    def check(self, rows: TaskRows, labels: Sequence[str]) -> None:
        """Refuse unknown labels."""
        tag_ids(rows.items, labels, rows.path)

    def strata(self, rows: TaskRows, labels: Sequence[str]) -> Int[np.ndarray, " rows"]:
        """The rarest label of each sentence."""
        return label_strata(label_presence(rows.items, labels))

    def facts(self, rows: TaskRows, labels: Sequence[str]) -> dict[str, Any]:
        """Words of each label."""
        counts = tag_counts(rows.items, labels)
        return {"train_words": sum(counts.values()), "word_counts": counts}

    def notes(self, rows: TaskRows, labels: Sequence[str]) -> list[str]:
        """What the labels are taken for, sentences that recur, and rare labels."""
        scheme = scheme_of_labels(labels)
        taken = "plain ones, so words are scored" if scheme is None else f"those of entities, in {scheme}"
        nameless = ": numbers tell no entities, so write names if they stand for some"
        numbers = nameless if all(name.isdecimal() for name in labels) else ""
        return [f"labels are taken for {taken}{numbers}", *tag_notes(rows.items, labels)]

    def heads(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> dict[str, Any]:
        """A head with an output for each label.

        Raises:
            InputError: for a treatment of long texts, of which every word is read always.
        """
        refuse_long_texts(config.long_texts, ("head",), "sentences are read in windows always, for all of their words")
        return {"labels": tuple(labels)}

    def examples(
        self,
        rows: TaskRows,
        labels: Sequence[str],
        tokenizer: Tokenizer,
        *,
        max_length: int,
        long_texts: LongTexts,
        heads: HeadsConfig,
    ) -> TaggedExamples:
        """Each sentence as one sequence, or as windows that together have every word."""
        return tagged_examples(rows.items, tag_ids(rows.items, labels, rows.path), tokenizer, max_length=max_length)

    def objective(self, rows: TaskRows, labels: Sequence[str], config: FinetuneConfig) -> Tagging:
        """Cross-entropy over words, with balanced weights where they are asked for."""
        if config.class_weights == "none":
            return Tagging()
        return Tagging(balanced_weights(np.concatenate(tag_ids(rows.items, labels, rows.path)), len(labels)))

    def evaluation(
        self,
        outputs: Float[np.ndarray, "tokens labels"],
        examples: TaskExamples,
        rows: TaskRows,
        heads: HeadsConfig,
        *,
        most_errors: int | None = MOST_ERRORS,
    ) -> dict[str, Any]:
        """Scores of words, and of entities where labels write some; each type or label; and the wrong words whose
        wrong label is the most certain."""
        labels, scheme = heads.labels, scheme_of_labels(heads.labels)
        words = _Words.read(outputs, examples, rows, labels)
        of_labels = label_scores(words.predicted, words.truth)
        found: dict[str, Any] = {"rows": len(rows.items), "words": len(words.truth)}
        found["counted"] = "words" if scheme is None else "entities"
        if scheme is None:
            found |= of_labels | class_details(words.predicted, words.truth, labels) | {"labels": list(labels)}
        else:
            truth, predicted = words.by_sentence(words.truth, labels), words.by_sentence(words.predicted, labels)
            counts = count_entities(truth, predicted)
            strict = entity_scores(count_entities(truth, predicted, strict=scheme))
            found |= entity_scores(counts) | {"strict_f1": strict["f1"], "accuracy": of_labels["accuracy"]}
            found["per_class"] = entity_details(counts)
        return found | {"loss": words.loss, "worst_errors": _worst_errors(words, rows.items, labels, most_errors)}

    def settle(
        self, outputs: Float[np.ndarray, "tokens labels"], examples: TaskExamples, rows: TaskRows, model: Model
    ) -> HeadsConfig:
        """Nothing is left to decide."""
        return model.config.heads

    def predictor(self, engine: Engine, tokenizer: Tokenizer) -> TagPredictor:
        """The predictor of a trained model."""
        return TagPredictor(engine, tokenizer)


@dataclass(frozen=True)
class _Words:
    """All words of some sentences, one after the other."""

    truth: Int[np.ndarray, " words"]
    predicted: Int[np.ndarray, " words"]
    scores: Float[np.ndarray, " words"]
    """Probability of what was predicted; 0 for a word that the tokenizer does not see."""
    starts: Int[np.ndarray, " sentences_plus_one"]
    """First word of each sentence."""
    loss: float
    """Over the words that the tokenizer sees."""

    @classmethod
    def read(
        cls,
        outputs: Float[np.ndarray, "tokens labels"],
        examples: TaskExamples,
        rows: TaskRows,
        labels: Sequence[str],
    ) -> "_Words":
        """Read each word's label at the token that carries it."""
        if not isinstance(examples, TaggedExamples):
            raise ValueError(
                "Labels are read off TaggedExamples. Received: other examples. Make them with Task.examples."
            )
        truth = np.concatenate(tag_ids(rows.items, labels, rows.path))
        starts = np.cumsum([0, *(len(sentence.words) for sentence in rows.items)])
        tokens = np.flatnonzero(examples.words >= 0)
        places = starts[np.repeat(examples.rows, examples.lengths)[tokens]] + examples.words[tokens]
        probabilities = softmax(outputs[tokens])
        predicted = np.full(len(truth), labels.index(label_without_pieces(labels)))
        predicted[places] = probabilities.argmax(1)
        scores = np.zeros(len(truth))
        scores[places] = probabilities.max(1)
        return cls(truth, predicted, scores, starts, label_loss(probabilities, truth[places]))

    def by_sentence(self, ids: Int[np.ndarray, " words"], labels: Sequence[str]) -> list[list[str]]:
        """Names of the labels of each sentence."""
        names = np.array(labels, dtype=object)
        return [names[part].tolist() for part in np.split(ids, self.starts[1:-1])]


def _worst_errors(
    words: _Words, sentences: Sequence[TaggedSentence], labels: Sequence[str], most: int | None
) -> list[dict[str, Any]]:
    wrong = np.flatnonzero(words.predicted != words.truth)
    errors: list[dict[str, Any]] = []
    for word in worst_of(wrong, words.scores[wrong], most):
        row = int(np.searchsorted(words.starts, word, side="right")) - 1
        number = word - int(words.starts[row])
        sentence = sentences[row]
        errors.append(
            {
                "place": f"{sentence.word_place(number)}, “{sentence.words[number]}”",
                "text": _around(sentence, number),
                "word": sentence.words[number],
                "label": labels[int(words.truth[word])],
                "predicted": labels[int(words.predicted[word])],
                "score": float(words.scores[word]),
            }
        )
    return errors


def _around(sentence: TaggedSentence, number: int) -> str:
    """The sentence around a word, cut where it is long."""
    # No more words than characters are joined: a sentence may be long, and every word of it wrong.
    first, last = max(0, number - _SHOWN_AROUND), number + 1 + _SHOWN_AROUND
    before, behind = " ".join(sentence.words[first:number]), " ".join(sentence.words[number + 1 : last])
    if len(before) > _SHOWN_AROUND:
        before = f"…{before[-_SHOWN_AROUND:]}"
    if len(behind) > _SHOWN_AROUND:
        behind = f"{behind[:_SHOWN_AROUND]}…"
    return f"{before} {sentence.words[number]} {behind}".strip()
