"""The downstream task of a comparison."""

import csv
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from bertsmith.corpus.corpus import Corpus
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.comparison.options import CompareConfig
from bertsmith.recipes.comparison.task import DownstreamTask, downstream_task, refuse_unusable_labels
from made_corpora import made_corpus, made_texts, made_tokenizer


def _config(sources: list[Path], **task: object) -> CompareConfig:
    values = {"sources": [str(source) for source in sources], "task": task}
    return CompareConfig.parse(values, where="a test")


def _task(config: CompareConfig, tmp_path: Path, texts: list[str] | None = None) -> DownstreamTask:
    corpus = tmp_path / "corpus"
    opened = Corpus.open(corpus) if corpus.is_dir() else made_corpus(corpus, texts or made_texts(40))
    return downstream_task(config, opened, made_tokenizer(), tmp_path / "task")


def _files(folder: Path, **texts: list[str]) -> list[Path]:
    for name, lines in texts.items():
        (folder / f"{name}.txt").write_text("\n\n".join(lines), encoding="utf-8")
    return [folder / f"{name}.txt" for name in texts]


def test_sentences_of_two_files_are_told_apart_by_file(tmp_path: Path) -> None:
    files = _files(
        tmp_path,
        ships=[f"The sailor of boat {number} opened the window again." for number in range(60)],
        houses=[f"A teacher in house {number} found bread and snow." for number in range(90)],
    )
    task = _task(_config(files), tmp_path)
    # As the files stand in the order of their names.
    assert task.labels == ("houses", "ships")
    rows = [*task.train, *task.test]
    assert Counter(label for _, label in rows) == {0: 60, 1: 60}
    assert all(("sailor" in text) == (label == 1) for text, label in rows)
    assert len({text for text, _ in rows}) == 120
    assert len(task.test) == 40
    assert task.commonest_share == pytest.approx(0.5)


def test_files_of_one_name_keep_their_folders(tmp_path: Path) -> None:
    for number, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        sentences = made_texts(40, sentences=(2, 4), seed=number)
        (tmp_path / folder / "text.txt").write_text("\n\n".join(sentences), encoding="utf-8")
    task = _task(_config([tmp_path / "a" / "text.txt", tmp_path / "b" / "text.txt"]), tmp_path)
    assert task.labels == (str(tmp_path / "a" / "text.txt"), str(tmp_path / "b" / "text.txt"))


def test_what_stands_in_two_files_is_no_question(tmp_path: Path) -> None:
    shared = [f"Nobody found the quiet garden of house {number} again." for number in range(30)]
    files = _files(
        tmp_path,
        ships=[*shared, *(f"The sailor of boat {number} opened the window again." for number in range(40))],
        houses=[*shared, *(f"A teacher in house {number} found bread and snow." for number in range(40)), *shared],
    )
    task = _task(_config(files), tmp_path)
    texts = [text for text, _ in [*task.train, *task.test]]
    assert len(texts) == len(set(texts)) == 80
    assert not set(texts) & set(shared)


def test_sentences_of_long_documents_are_told_apart_by_document(tmp_path: Path) -> None:
    places = {"river": 90, "garden": 70, "bridge": 20, "harbour": 6}
    documents = [
        " ".join(f"Every morning at the {place} number {number} was quiet." for number in range(count))
        for place, count in places.items()
    ]
    (file,) = _files(tmp_path, alone=documents)
    task = _task(_config([file]), tmp_path, [*documents, *made_texts(30)])
    # Two documents give 140 sentences, three would give 60.
    assert task.description == "in which of 2 documents of the corpus a sentence stands"
    rows = [*task.train, *task.test]
    assert Counter(label for _, label in rows) == {0: 70, 1: 70}
    for text, label in rows:
        assert (" river " in text) == (label == rows[0][1] if " river " in rows[0][0] else label != rows[0][1])
    assert len(set(task.labels)) == 2
    assert all(label.startswith("Every morning at the") for label in task.labels)


def test_one_file_of_short_documents_gives_sentences_in_order_and_swapped(tmp_path: Path) -> None:
    (file,) = _files(tmp_path, alone=made_texts(40))
    task = _task(_config([file]), tmp_path)
    assert task.labels == ("right", "wrong")
    corpus = Corpus.open(tmp_path / "corpus")
    whole: set[str] = set()
    for name in ("train", "validation"):
        split = corpus.split(name)
        starts = split.sentence_starts.tolist()
        whole |= {made_tokenizer().decode(split.tokens(a, b)).strip() for a, b in pairwise(starts)}
    bags = {" ".join(sorted(text.split())) for text in whole}
    for text, label in [*task.train, *task.test]:
        assert (text in whole) == (label == 0)
        assert " ".join(sorted(text.split())) in bags
    counts = Counter(label for _, label in [*task.train, *task.test])
    assert abs(counts[0] - counts[1]) <= 1


def test_a_small_second_file_is_no_class(tmp_path: Path) -> None:
    files = _files(tmp_path, large=made_texts(40), small=["Nobody walked under the old bridge again."])
    assert _task(_config(files), tmp_path).labels == ("right", "wrong")


def _table(path: Path, rows: int) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "stars"])
        writer.writerows([f"text {number}", ("bad", "good", "good")[number % 3]] for number in range(rows))
    return path


def test_a_table_of_labels_is_taken_as_it_is(tmp_path: Path) -> None:
    table = _table(tmp_path / "reviews.csv", 90)
    config = _config([tmp_path], labels=str(table), table={"text": "review", "label": "stars"})
    task = _task(config, tmp_path)
    assert task.labels == ("bad", "good")
    assert "reviews.csv, column stars" in task.description
    assert (len(task.train), len(task.test)) == (60, 30)
    for text, label in [*task.train, *task.test]:
        assert label == (0 if int(text.split()[1]) % 3 == 0 else 1)
    assert task.commonest_share == pytest.approx(2 / 3)


def test_a_text_of_several_rows_is_not_learned_and_judged(tmp_path: Path) -> None:
    table = _table(tmp_path / "reviews.csv", 90)
    with open(table, "a", encoding="utf-8", newline="") as file:
        rows = [(f"text  {number} ", "bad" if number % 3 == 0 else "good") for number in range(30)]
        csv.writer(file).writerows([*rows, *rows, ("text 89", "bad"), ("text 88", "bad")])
    config = _config([tmp_path], labels=str(table), table={"text": "review", "label": "stars"})
    task = _task(config, tmp_path)
    texts = [" ".join(text.split()) for text, _ in [*task.train, *task.test]]
    # Under two labels, neither can be right.
    assert sorted(texts) == sorted(f"text {number}" for number in range(88))
    assert "column stars; 64 rows left out, whose text stands in another row too" in task.description


def test_a_table_of_one_text_over_and_over_is_too_short(tmp_path: Path) -> None:
    table = tmp_path / "reviews.csv"
    table.write_text("review,stars\n" + "the same,good\n" * 50)
    config = _config([tmp_path], labels=str(table), table={"text": "review", "label": "stars"})
    with pytest.raises(InputError, match=r"20 texts at least.*1 in .*49 rows left out"):
        refuse_unusable_labels(config.task)


def test_errors_name_the_settings_of_a_comparison(tmp_path: Path) -> None:
    table = tmp_path / "reviews.csv"
    table.write_text("review,stars\nx,good\n,bad\n")
    names = {"text": "review", "label": "stars"}
    with pytest.raises(InputError, match=r"--set task\.table\.blank_rows=skip"):
        refuse_unusable_labels(_config([tmp_path], labels=str(table), table=names).task)
    with pytest.raises(InputError, match=r"--set task\.table\.pair must be one of"):
        refuse_unusable_labels(_config([tmp_path], labels=str(table), table=names | {"pair": "more"}).task)
    table.write_bytes(b"review,stars\ncaf\xe9,good\n")
    with pytest.raises(InputError, match=r"--set task\.table\.encoding=NAME"):
        refuse_unusable_labels(_config([tmp_path], labels=str(table), table=names).task)


def test_a_large_table_is_cut_to_the_sizes_asked_for(tmp_path: Path) -> None:
    table = _table(tmp_path / "reviews.csv", 300)
    sizes = {"most_train_texts": 40, "most_test_texts": 20}
    config = _config([tmp_path], labels=str(table), table={"text": "review", "label": "stars"}, **sizes)
    task = _task(config, tmp_path)
    assert (len(task.train), len(task.test)) == (40, 20)


def test_a_task_that_stands_is_not_made_again(tmp_path: Path) -> None:
    table = _table(tmp_path / "reviews.csv", 90)
    config = _config([tmp_path], labels=str(table), table={"text": "review", "label": "stars"})
    first = _task(config, tmp_path)
    table.unlink()
    assert _task(config, tmp_path) == first


def test_a_table_that_is_too_short_is_refused_before_anything(tmp_path: Path) -> None:
    table = _table(tmp_path / "reviews.csv", 9)
    config = _config([tmp_path], labels=str(table), table={"text": "review", "label": "stars"})
    with pytest.raises(InputError, match="20 texts at least"):
        refuse_unusable_labels(config.task)


def test_a_corpus_with_too_few_sentences_is_refused(tmp_path: Path) -> None:
    (file,) = _files(tmp_path, alone=["A word."])
    with pytest.raises(InputError, match="20 sentences"):
        _task(_config([file]), tmp_path, made_texts(5, sentences=(1, 2)))
    assert not (tmp_path / "task").exists()


def test_a_template_without_its_places_is_refused() -> None:
    with pytest.raises(InputError, match="template"):
        _config([Path("a.txt")], template="{label} of {text}")
