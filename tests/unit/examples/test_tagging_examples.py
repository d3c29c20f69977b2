"""Words with labels as token sequences: which token carries which label, and windows over long sentences."""

from pathlib import Path

import numpy as np
import pytest
import torch

from bertsmith.batches.task_loader import TaskLoader
from bertsmith.examples.tagging import (
    WordCutter,
    label_presence,
    label_without_pieces,
    tag_counts,
    tag_ids,
    tag_labels,
    tag_notes,
    tagged_examples,
    word_ranges,
)
from bertsmith.examples.targets import IGNORED
from bertsmith.foundation.errors import InputError
from bertsmith.text.tagged import TaggedSentence
from made_corpora import made_tokenizer
from made_sentences import ENTITY_LABELS, made_sentences, tagged

FILE = Path("a.conll")
ALGORITHMS = ("wordpiece", "bpe", "unigram")


def _ids(sentences: list[TaggedSentence], labels: tuple[str, ...] = ENTITY_LABELS) -> list[np.ndarray]:
    return tag_ids(sentences, labels, FILE)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_first_piece_of_a_word_carries_its_label_and_the_others_none(algorithm: str) -> None:
    tokenizer = made_tokenizer(algorithm)
    words = ["Catherine", "walked", "Xanthi", "."]
    one = tagged(words, ["B-PER", "O", "B-LOC", "O"])
    examples = tagged_examples([one], _ids([one]), tokenizer, max_length=64)
    pieces = tokenizer.word_pieces(words)
    assert max(map(len, pieces)) > 1
    expected: list[int] = [IGNORED]
    for tag, ids in zip(one.tags, pieces, strict=True):
        expected += [ENTITY_LABELS.index(tag)] + [IGNORED] * (len(ids) - 1)
    assert examples.targets.tolist() == [*expected, IGNORED]
    flat = [token for ids in pieces for token in ids]
    assert examples.token_ids.tolist() == [tokenizer.cls_id, *flat, tokenizer.sep_id]
    assert [number for number in examples.words.tolist() if number >= 0] == [0, 1, 2, 3]
    assert examples.targets_by == "token"


def test_labels_are_held_in_half_the_bytes_that_losses_take() -> None:
    sentences = made_sentences(4)
    examples = tagged_examples(sentences, _ids(sentences), made_tokenizer(), max_length=64)
    assert (examples.targets.dtype, examples.words.dtype) == (np.int32, np.int32)
    loader = TaskLoader(examples, batch_size=4, micro_batch_tokens=4096, seed=0)
    (batch,) = loader.in_order()
    assert batch.labels is not None
    assert batch.labels.dtype == torch.int64
    assert batch.labels[: len(examples.targets)].tolist() == examples.targets.tolist()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_words_without_pieces_shift_no_label(algorithm: str) -> None:
    tokenizer = made_tokenizer(algorithm)
    one = tagged(["Ann", "\n", "\u200b", "", "Acme"], ["B-PER", "O", "O", "O", "B-LOC"])
    examples = tagged_examples([one], _ids([one]), tokenizer, max_length=64)
    carried = examples.targets[examples.words >= 0].tolist()
    assert examples.words[examples.words >= 0].tolist() == [0, 4]
    assert [ENTITY_LABELS[label] for label in carried] == ["B-PER", "B-LOC"]
    assert examples.notes == ("words in which the tokenizer sees nothing, so that nothing is learned from them: 3",)


def test_a_long_sentence_has_every_word_labelled_exactly_once() -> None:
    tokenizer = made_tokenizer()
    words = ["Catherine" if number % 7 == 0 else "river" for number in range(600)]
    one = tagged(words, ["B-PER" if word == "Catherine" else "O" for word in words])
    short = made_sentences(3)
    sentences = [short[0], one, *short[1:]]
    examples = tagged_examples(sentences, _ids(sentences), tokenizer, max_length=32)
    assert examples.lengths.max() <= 32
    assert examples.rows.tolist() == sorted(examples.rows.tolist())
    assert len(examples) > 600 // 30
    of_token = np.repeat(examples.rows, examples.lengths)
    for row, sentence in enumerate(sentences):
        here = (of_token == row) & (examples.words >= 0)
        assert examples.words[here].tolist() == list(range(len(sentence.words)))
        assert [ENTITY_LABELS[label] for label in examples.targets[here]] == list(sentence.tags)
    assert examples.num_cut == 0
    assert examples.notes == ()


def test_windows_overlap_never_cut_a_word_and_keep_it_where_it_has_most_around_it() -> None:
    sizes = np.ones(30, np.int64)
    ranges = word_ranges(sizes, 10, 4)
    assert [seen for seen, _ in ranges] == [(0, 10), (6, 16), (12, 22), (18, 28), (20, 30)]
    assert [read for _, read in ranges] == [(0, 8), (8, 14), (14, 20), (20, 24), (24, 30)]


def test_a_word_as_long_as_a_window_has_one_to_itself() -> None:
    sizes = np.array([2, 10, 1, 1, 9, 3])
    assert word_ranges(sizes, 10, 4) == [
        ((0, 1), (0, 1)),
        ((1, 2), (1, 2)),
        ((2, 4), (2, 4)),
        ((3, 5), (4, 5)),
        ((5, 6), (5, 6)),
    ]


def test_a_word_longer_than_a_window_is_seen_by_its_beginning_and_said() -> None:
    one = tagged(["x" * 90, "river"], ["B-LOC", "O"])
    tokenizer = made_tokenizer("bpe")
    examples = tagged_examples([one], _ids([one]), tokenizer, max_length=16)
    assert examples.words[examples.words >= 0].tolist() == [0, 1]
    assert examples.lengths.max() <= 16
    assert examples.notes == ("sentences with a word too long for 16 tokens, of which the beginning is seen: 1",)


def test_special_tokens_that_stand_in_the_text_are_words() -> None:
    tokenizer = made_tokenizer()
    windows, _ = WordCutter(tokenizer, 64).windows(["[SEP]", "[CLS]", "boat"])
    ids = windows[0].token_ids.tolist()
    assert ids.count(tokenizer.sep_id) == ids.count(tokenizer.cls_id) == 1
    assert [number for number in windows[0].words.tolist() if number >= 0] == [0, 1, 2]


def test_sentences_that_the_tokenizer_does_not_see_are_refused_and_a_single_one_is_passed_over() -> None:
    unseen, seen = tagged(["\u200b", " "], ["O", "O"]), tagged(["boat"], ["O"])
    examples = tagged_examples([unseen, seen], _ids([unseen, seen]), made_tokenizer(), max_length=64)
    assert examples.rows.tolist() == [1]
    with pytest.raises(InputError, match="must have a word that the tokenizer sees"):
        tagged_examples([unseen], _ids([unseen]), made_tokenizer(), max_length=64)


def test_a_length_without_room_is_refused() -> None:
    with pytest.raises(InputError, match="--max-length must leave room for text beside 2"):
        WordCutter(made_tokenizer(), 2)


def test_labels_come_from_the_data_ordered_by_name() -> None:
    sentences = [tagged(["a", "b"], ["O", "I-Z"]), tagged(["c"], ["B-Z"])]
    assert tag_labels(sentences, FILE) == ("B-Z", "I-Z", "O")
    assert tag_labels([tagged(["a", "b", "c"], ["10", "2", "0"])], FILE) == ("0", "2", "10")
    with pytest.raises(InputError, match=r"two labels at least.*only O for every word of a\.conll"):
        tag_labels([tagged(["a", "b"], ["O", "O"])], FILE)


def test_labels_are_mapped_by_name_in_whatever_order_the_model_has_them() -> None:
    sentences = made_sentences(5)
    backwards = ENTITY_LABELS[::-1]
    for one, other in zip(_ids(sentences), _ids(sentences, backwards), strict=True):
        assert [ENTITY_LABELS[label] for label in one] == [backwards[label] for label in other]


def test_an_unknown_label_is_named_with_its_word_and_line() -> None:
    sentences = [tagged(["a", "b"], ["O", "O"], 1), tagged(["c", "Dee"], ["O", "B-PERS"], 4)]
    with pytest.raises(InputError, match=r"“B-PERS” of “Dee” in a\.conll, line 5.*Did you mean B-PER"):
        _ids(sentences)


def test_rare_labels_and_repeated_sentences_are_said() -> None:
    sentences = [tagged(["a"] * 10, ["O"] * 10)] * 2 + [tagged(["b"], ["B-PER"])]
    assert tag_counts(sentences, ENTITY_LABELS) == {"B-LOC": 0, "B-PER": 1, "I-LOC": 0, "I-PER": 0, "O": 20}
    assert tag_notes(sentences, ("B-PER", "O")) == [
        "1 of 3 sentences repeats another",
        "labels of fewer than 10 training words: B-PER 1",
    ]
    assert label_presence(sentences, ("B-PER", "O")).tolist() == [[0, 1], [0, 1], [1, 0]]


def test_labels_that_look_alike_are_said() -> None:
    sentences = [tagged(["a"] * 20, ["B-per", "B-PER"] * 10)]
    assert tag_notes(sentences, ("B-PER", "B-per")) == [
        "labels that look alike and are learned as different ones: “B-PER” and “B-per” (by case)"
    ]


def test_a_word_that_is_not_seen_has_a_stated_label() -> None:
    assert label_without_pieces(("B-X", "O", "X")) == "O"
    assert label_without_pieces(("NOUN", "X")) == "X"
    assert label_without_pieces(("NOUN", "VERB")) == "NOUN"
