"""Masked batches, next sentences and aligned labels for a training loop of one's own."""

from pathlib import Path

import numpy as np
import pytest
import torch

from bertsmith import InputError, TaskModel, aligned_labels, masked_batch, next_sentence_example
from bertsmith.examples.tagging import tagged_examples
from bertsmith.text.tagged import TaggedSentence
from made_corpora import made_texts, made_tokenizer
from made_tasks import made_encoder

TOKENIZER = made_tokenizer()
WORDS = ["the", "boat", "Number", "was", "unbelievably", "snow"]


def padded_texts(count: int) -> torch.Tensor:
    encoded = TOKENIZER.encode_batch(made_texts(count), 48)
    rows = [torch.tensor(one.token_ids).long() for one in encoded]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=TOKENIZER.pad_id or 0)


def test_the_shares_of_a_masked_batch_are_those_published_and_specials_stay() -> None:
    ids = padded_texts(2_000)
    before = ids.clone()
    found = masked_batch(ids, TOKENIZER, seed=0)
    assert torch.equal(ids, before)
    specials = torch.tensor(sorted(TOKENIZER.special_ids))
    special = torch.isin(ids, specials)
    chosen = found.labels != -100
    assert torch.equal(found.labels[chosen], ids[chosen])
    assert torch.equal(found.token_ids[~chosen], ids[~chosen])
    assert not (chosen & special).any()
    assert chosen.any(1).all()
    assert chosen.sum() / (~special).sum() == pytest.approx(0.15, abs=0.005)
    seen = found.token_ids[chosen]
    masks, kept = seen == TOKENIZER.mask_id, seen == ids[chosen]
    assert masks.float().mean() == pytest.approx(0.8, abs=0.02)
    assert kept.float().mean() == pytest.approx(0.1, abs=0.02)
    assert not torch.isin(seen[~masks], specials).any()


@pytest.mark.parametrize("selection", ["exact", "bernoulli"])
def test_random_replacement_never_draws_a_special_id(selection: str) -> None:
    ids = np.full((400, 50), 9)
    found = masked_batch(
        ids,
        seed=1,
        mask_id=3,
        special_ids=[0, 1, 2],
        vocab_size=12,
        mask_rate=1.0,
        mask_token_share=0.0,
        random_token_share=1.0,
        selection=selection,  # pyright: ignore[reportArgumentType]
    )
    assert set(found.token_ids.unique().tolist()) == set(range(4, 12))
    assert (ids == 9).all()


def test_masks_depend_on_the_seed_and_a_generator_goes_on() -> None:
    ids = padded_texts(20)
    stream = np.random.default_rng(0)
    one, two, three = (masked_batch(ids, TOKENIZER, seed=seed).labels for seed in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, three)
    assert not torch.equal(*(masked_batch(ids, TOKENIZER, seed=stream).labels for _ in range(2)))


def test_a_masked_batch_trains_a_model_that_fills(tmp_path: Path) -> None:
    folder = made_encoder(tmp_path / "model")
    model, ids = TaskModel.from_folder(folder).train(), padded_texts(8)
    batch = masked_batch(ids.tolist(), folder, seed=0)
    loss = model(batch.token_ids, ids != TOKENIZER.pad_id, labels=batch.labels).loss
    loss.backward()
    assert loss > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokenizer": TOKENIZER, "mask_rate": 15.0}, r"Did you mean 0\.15"),
        ({"tokenizer": TOKENIZER, "vocab_size": 9}, "in a tokenizer's place"),
        ({"mask_id": 4}, "needs a tokenizer, or mask_id, special_ids and vocab_size"),
        ({"tokenizer": TOKENIZER, "token_ids": [[1, 2], [3]]}, "several lengths"),
        ({"tokenizer": TOKENIZER, "token_ids": [1, 2]}, r"\[batch, sequence\]"),
        ({"tokenizer": TOKENIZER, "token_ids": [[0.5]]}, "whole numbers"),
        ({"tokenizer": TOKENIZER, "token_ids": [[10**6]]}, "another tokenizer"),
        ({"mask_id": 1, "special_ids": [0], "vocab_size": 2}, "a token that is not special"),
    ],
)
def test_a_masked_batch_says_what_it_cannot_be_made_of(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        masked_batch(**{"token_ids": [[9, 9]], "seed": 0} | arguments)  # pyright: ignore[reportArgumentType]


def test_a_batch_of_specials_alone_asks_for_nothing() -> None:
    found = masked_batch([[TOKENIZER.cls_id, TOKENIZER.sep_id]], TOKENIZER, seed=0)
    assert (found.labels == -100).all()


@pytest.mark.parametrize(("is_next", "label"), [(True, 0), (False, 1)])
def test_a_next_sentence_example_is_framed_and_0_means_next(is_next: bool, label: int) -> None:
    found = next_sentence_example("the boat", "the snow", TOKENIZER, is_next=is_next)
    assert found.tokens[0] == "[CLS]"
    border = found.tokens.index("[SEP]")
    assert found.tokens[-1] == "[SEP]"
    assert found.tokens.count("[SEP]") == 2
    assert found.segment_ids.tolist() == [0] * (border + 1) + [1] * (len(found.tokens) - border - 1)
    assert TOKENIZER.tokens(found.token_ids.numpy()) == list(found.tokens)
    assert found.label == label


def test_a_next_sentence_example_is_cut_on_its_longer_side() -> None:
    found = next_sentence_example(" ".join(["boat"] * 40), "the snow", TOKENIZER, is_next=True, max_length=12)
    short = TOKENIZER.word_pieces(["the", "snow"])
    assert len(found.tokens) == 12
    assert int((found.segment_ids == 1).sum()) == sum(map(len, short)) + 1
    with pytest.raises(InputError, match="must not be blank"):
        next_sentence_example("the boat", " ", TOKENIZER, is_next=True)


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_the_first_piece_of_a_word_has_its_label_as_in_finetune(algorithm: str) -> None:
    tokenizer = made_tokenizer(algorithm)
    labels = [3, 1, -100, 0, 2, 1]
    found = aligned_labels(WORDS, labels, tokenizer)
    pieces = tokenizer.word_pieces(WORDS)
    assert max(map(len, pieces)) > 1
    expected = [
        -100,
        *(n for label, ids in zip(labels, pieces, strict=True) for n in [label] + [-100] * (len(ids) - 1)),
    ]
    assert found.labels.tolist() == [*expected, -100]
    assert found.num_words == len(WORDS)
    sentence = TaggedSentence(tuple(WORDS), ("a",) * len(WORDS), "line 1")
    trained = tagged_examples([sentence], [np.array(labels)], tokenizer, max_length=100)
    assert found.token_ids.tolist() == trained.token_ids.tolist()
    assert found.labels.tolist() == trained.targets.tolist()
    assert [number for number in found.word_ids.tolist() if number >= 0] == list(range(len(WORDS)))


def test_words_that_find_no_room_are_left_out_whole() -> None:
    labels = list(range(len(WORDS)))
    for length in range(3, 40):
        found = aligned_labels(WORDS, labels, TOKENIZER, max_length=length)
        assert len(found.token_ids) <= length
        assert found.labels[found.labels >= 0].tolist() == labels[: found.num_words]
        assert found.token_ids[-1] == TOKENIZER.sep_id
    long = aligned_labels(["the"] * 400, [1] * 400, TOKENIZER, max_length=50)
    assert (len(long.token_ids), long.num_words) == (50, 48)


def test_labels_may_be_names() -> None:
    found = aligned_labels(["the", "boat"], ["O", "B"], TOKENIZER, names=("B", "O"))
    assert found.labels[found.labels >= 0].tolist() == [1, 0]
    for arguments, message in (
        ((["the"], ["O", "B"]), "one label for each word"),
        ((["the"], ["X"]), r"A label must be one of: B, O"),
        ((["the"], [2]), "number from 0 on"),
        ((["the"], [-1]), "number from 0 on"),
        (("the", [0, 0, 0]), "a list of texts"),
        (([" "], [0]), "must see a word"),
    ):
        with pytest.raises(InputError, match=message):
            aligned_labels(*arguments, TOKENIZER, names=("B", "O"))
    with pytest.raises(InputError, match="need names"):
        aligned_labels(["the"], ["O"], TOKENIZER)
