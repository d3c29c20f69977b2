"""The downstream task of a comparison: a table of labelled texts, or one made out of the corpus itself."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np

from bertsmith.corpus.corpus import Corpus, Split
from bertsmith.examples.classification import label_ids, label_name, labels_of, stratified_split, whole_number
from bertsmith.examples.table_config import OptionNames
from bertsmith.examples.task_tables import TaskRow, TaskTable, read_task_table
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import MANIFEST, new_folder, write_file, write_json
from bertsmith.foundation.random_streams import random_stream
from bertsmith.inference.prompting import label_pieces
from bertsmith.recipes.comparison.options import CompareConfig, CompareTask
from bertsmith.recipes.text_sources import is_corpus
from bertsmith.text.documents import TextConfig, find_files, read_documents
from bertsmith.text.sentences import split_sentences
from bertsmith.text.shown import counted
from bertsmith.tokenization.tokenizer import Tokenizer

Rows = list[tuple[str, int]]
"""Text and number of its label."""
_Made = tuple[str, tuple[str, ...], Rows]
"""What the task is, its labels, and its texts."""

_FEWEST_TEXTS = 20
_MOST_CLASSES = 8
_NAME_WORDS = 4
"""Words of a document's beginning that name it."""
_MOST_READ = 50_000
"""Sentences that are looked at to choose from, in a file or a corpus."""
_FEWEST_WORDS, _MOST_WORDS = 5, 40
_SWAP_LABELS = ("right", "wrong")
_OPTIONS = OptionNames(
    pair="--set task.table.pair",
    encoding="--set task.table.encoding=NAME",
    skip_blank="--set task.table.blank_rows=skip",
)


@dataclass(frozen=True)
class DownstreamTask:
    """Texts to learn from and texts to be judged by."""

    folder: Path
    """Where `train.jsonl` and `test.jsonl` stand."""
    description: str
    labels: tuple[str, ...]
    train: Rows
    test: Rows

    @property
    def commonest_share(self) -> float:
        """Share of the test that always naming the commonest training label gets right."""
        commonest = np.bincount([label for _, label in self.train], minlength=len(self.labels)).argmax()
        return float(np.mean([label == commonest for _, label in self.test]))


def downstream_task(config: CompareConfig, corpus: Corpus, tokenizer: Tokenizer, folder: Path) -> DownstreamTask:
    """The task that stands in `folder`, or a new one written there.

    Raises:
        InputError: if a table of labels cannot be used, or the corpus has too few sentences to make a task of.
    """
    if not (folder / MANIFEST).is_file():
        description, labels, rows = _rows(config, corpus, tokenizer)
        label_pieces(tokenizer, labels, config.max_length)  # What cannot be prompted with is told now.
        task = config.task
        order = random_stream(config.seed, "task").permutation(len(rows))[
            : task.most_train_texts + task.most_test_texts
        ]
        rows = [rows[place] for place in order]
        share = task.most_test_texts / (task.most_train_texts + task.most_test_texts)
        train, test = stratified_split(np.array([label for _, label in rows]), share=share, seed=config.seed)
        with new_folder(folder, seal={"kind": "task"}) as temporary:
            for name, members in (("train", train), ("test", test)):
                lines = [{"text": rows[place][0], "label": labels[rows[place][1]]} for place in members]
                write_file(
                    temporary / f"{name}.jsonl", "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
                )
            write_json(temporary / "task.json", {"description": description, "labels": labels})
    found = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    labels = tuple(found["labels"])
    return DownstreamTask(
        folder,
        found["description"],
        labels,
        _read(folder / "train.jsonl", labels),
        _read(folder / "test.jsonl", labels),
    )


def refuse_unusable_labels(task: CompareTask) -> None:
    """Raise an `InputError` where a table of labels was named that cannot be used."""
    if task.labels is not None:
        _labelled(task)


def _read(path: Path, labels: Sequence[str]) -> Rows:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [(row["text"], labels.index(row["label"])) for row in rows]


def _rows(config: CompareConfig, corpus: Corpus, tokenizer: Tokenizer) -> _Made:
    if config.task.labels is not None:
        return _labelled(config.task)
    files = [] if is_corpus(config.sources[0]) else find_files(config.sources)
    return (
        _by_file(files, config.text, config.seed)
        or _by_document(corpus, tokenizer, config.seed)
        or _by_order(corpus, tokenizer, config.seed)
    )


def _labelled(task: CompareTask) -> _Made:
    whole = read_task_table(Path(str(task.labels)), task.table, options=_OPTIONS)
    table = _each_text_once(whole)
    left_out = len(whole.rows) - len(table.rows)
    repeats = f"; {counted(left_out, 'row')} left out, whose text stands in another row too" if left_out else ""
    if len(table.rows) < _FEWEST_TEXTS:
        raise InputError(
            f"A table of labels must hold {_FEWEST_TEXTS} texts at least",
            f"{len(table.rows)} in {table.path}{repeats}",
            "Add some.",
        )
    labels = labels_of(table)
    ids = label_ids(table, labels).tolist()
    texts = [_joined(row) for row in table.rows]
    description = f"the labels of {table.path.name}, column {table.columns.label}{repeats}"
    return description, labels, list(zip(texts, ids, strict=True))


def _each_text_once(table: TaskTable) -> TaskTable:
    """The first row of each text, and none of a text under several labels: what is judged must not have been learned.

    Texts that differ in white space alone are one.
    """
    rows: dict[str, TaskRow] = {}
    labels: dict[str, set[str]] = {}
    for row in table.rows:
        text = " ".join(_joined(row).split())
        rows.setdefault(text, row)
        labels.setdefault(text, set()).add(whole_number(label_name(row, table)))
    return replace(table, rows=tuple(row for text, row in rows.items() if len(labels[text]) == 1))


def _joined(row: TaskRow) -> str:
    return row.text if row.pair is None else f"{row.text} {row.pair}"


def _by_file(files: Sequence[Path], text: TextConfig, seed: int) -> _Made | None:
    """Which file a sentence stands in; None where fewer than two files have enough sentences."""
    largest = sorted(sorted(files, key=lambda path: -path.stat().st_size)[:_MOST_CLASSES])
    if len(largest) < 2:
        return None
    stems = [path.name.split(".")[0] for path in largest]
    names = [stem if stems.count(stem) == 1 else str(path) for path, stem in zip(largest, stems, strict=True)]
    found = {
        name: list(islice(_sentences_of(path, text), _MOST_READ)) for name, path in zip(names, largest, strict=True)
    }
    made = _told_apart(found, seed)
    return None if made is None else (f"in which of {len(made[0])} files of the corpus a sentence stands", *made)


def _by_document(corpus: Corpus, tokenizer: Tokenizer, seed: int) -> _Made | None:
    """Which of the longest documents a sentence stands in; None where fewer than two have enough sentences."""
    split = corpus.split("train")
    longest = np.argsort(-np.diff(split.document_starts), kind="stable")[: 2 * _MOST_CLASSES]
    found: dict[str, list[str]] = {}
    for document in sorted(longest.tolist()):
        first, end = split.document_starts[document : document + 2].tolist()
        sentences = list(islice(_decoded(split, tokenizer, first, end), _MOST_READ))
        name = " ".join(sentences[0].split()[:_NAME_WORDS]) if sentences else ""
        found[name if name and name not in found else f"{name} {document}".strip()] = [
            one for one in sentences if _fits(one)
        ]
    made = _told_apart(found, seed)
    return None if made is None else (f"in which of {len(made[0])} documents of the corpus a sentence stands", *made)


def _told_apart(found: dict[str, list[str]], seed: int) -> tuple[tuple[str, ...], Rows] | None:
    """Classes with as many sentences each, so that none is the likelier answer: as many classes as give most texts."""
    found = _of_one_class(found)
    sizes = sorted((len(sentences) for sentences in found.values()), reverse=True)[:_MOST_CLASSES]
    counts = {number: number * sizes[number - 1] for number in range(2, len(sizes) + 1)}
    enough = [number for number in counts if sizes[number - 1] >= _FEWEST_TEXTS]
    if not enough:
        return None
    number = max(enough, key=lambda classes: (counts[classes], classes))
    each = sizes[number - 1]
    names = [name for name, sentences in found.items() if len(sentences) >= each][:number]
    rows = [
        (found[name][place], label)
        for label, name in enumerate(names)
        for place in random_stream(seed, "task", name).permutation(len(found[name]))[:each].tolist()
    ]
    return tuple(names), rows


def _of_one_class(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Each sentence once, and none that stands in several classes: what is judged must not have been learned."""
    classes = Counter(sentence for sentences in found.values() for sentence in set(sentences))
    return {
        name: [sentence for sentence in dict.fromkeys(sentences) if classes[sentence] == 1]
        for name, sentences in found.items()
    }


def _sentences_of(path: Path, text: TextConfig) -> Iterator[str]:
    for document in read_documents([path], text):
        yield from (sentence for sentence in split_sentences(document.text) if _fits(sentence))


def _fits(sentence: str) -> bool:
    return _FEWEST_WORDS <= len(sentence.split()) <= _MOST_WORDS


def _by_order(corpus: Corpus, tokenizer: Tokenizer, seed: int) -> _Made:
    """Whether two neighbouring words of a sentence were swapped (bigram shift of Conneau et al. 2018)."""
    splits = [corpus.split("validation"), corpus.split("train")]
    decoded = chain.from_iterable(
        _decoded(split, tokenizer, 0, min(split.num_sentences, _MOST_READ)) for split in splits
    )
    sentences = [sentence for sentence in decoded if _fits(sentence)]
    stream = random_stream(seed, "swaps")
    rows: Rows = []
    for sentence in dict.fromkeys(sentences):
        words = sentence.split()
        swappable = [place for place in range(len(words) - 1) if words[place] != words[place + 1]]
        if swappable and (label := len(rows) % 2):
            place = int(stream.choice(swappable))
            words[place : place + 2] = words[place + 1], words[place]
            rows.append((" ".join(words), label))
        elif swappable:
            rows.append((sentence, 0))
    if len(rows) < _FEWEST_TEXTS:
        raise InputError(
            f"A comparison needs {_FEWEST_TEXTS} sentences of {_FEWEST_WORDS} to {_MOST_WORDS} words to make a task of",
            f"{len(rows)} of them",
            "Give more text, or labelled texts with --labels FILE.",
        )
    return "whether two neighbouring words of a sentence of the corpus were swapped", _SWAP_LABELS, rows


def _decoded(split: Split, tokenizer: Tokenizer, first: int, end: int) -> Iterator[str]:
    """Sentences `first` to `end` of a split, as the tokenizer writes them."""
    for start, stop in pairwise(split.sentence_starts[first : end + 1].tolist()):
        yield tokenizer.decode(split.tokens(start, stop)).strip()
