"""What a batch asks for."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from loader_parts import content, loader_of

from bertsmith.batches.loader import PretrainingLoader
from bertsmith.batches.targets import MaskedTargets, PlainTokens
from bertsmith.corpus.corpus import Split
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import document_sentences
from bertsmith.foundation.random_streams import random_stream
from made_corpora import made_corpus, made_format, made_split, made_texts, made_tokenizer

Masks = dict[tuple[int, ...], tuple[int, ...]]


def _split() -> Split:
    """Thirty documents of random tokens, all in the small vocabulary."""
    stream = random_stream(0, "lengths")
    split = made_split([stream.integers(6, 25, size=stream.integers(1, 9)).tolist() for _ in range(30)])
    split.__dict__["_shards"] = [stream.integers(10, 250, size=split.num_tokens)]
    return split


def _masks(loader: PretrainingLoader, epoch: int) -> Masks:
    """From the text of each sequence of an epoch to what the model sees of it."""
    found: Masks = {}
    for step in range(epoch * loader.batches_per_epoch, (epoch + 1) * loader.batches_per_epoch):
        held = content(loader.micro_batches(step))
        true = held.token_ids.copy()
        true[held.target_positions] = held.target_ids
        for start, end in pairwise([0, *np.cumsum(held.lengths).tolist()]):
            found[tuple(true[start:end].tolist())] = tuple(held.token_ids[start:end].tolist())
    return found


@pytest.mark.parametrize("unit", ["token", "whole_word", "ngram", "span"])
def test_static_masks_come_again_in_turn_whatever_the_batch(unit: str) -> None:
    targets = MaskedTargets(MaskingConfig.parse({"duplicates": 3, "unit": unit, "mask_rate": 0.4}, where="a test"))
    split = _split()
    loader, other = loader_of(split, targets=targets), loader_of(split, targets=targets, batch_tokens=333)
    assert loader.batches_per_epoch != other.batches_per_epoch
    turns = [_masks(loader, epoch) for epoch in range(3)]
    assert turns[0].keys() == turns[1].keys() == turns[2].keys()
    for first, second in ((0, 1), (1, 2), (0, 2)):
        assert sum(turns[first][text] != turns[second][text] for text in turns[0]) > len(turns[0]) / 2
    assert _masks(loader, 3) == turns[0]
    assert _masks(loader, 7) == turns[1]
    for epoch in range(5):
        assert _masks(other, epoch) == turns[epoch % 3]
    assert _masks(loader_of(split, targets=targets, seed=1), 0) != turns[0]


def test_dynamic_masks_do_not_come_again() -> None:
    loader = loader_of(_split())
    turns = [_masks(loader, epoch) for epoch in range(4)]
    assert all(turns[0] != other for other in turns[1:])


def test_the_mask_rate_follows_the_run_and_needs_its_steps() -> None:
    split = made_split([[40]] * 400)
    targets = MaskedTargets(MaskingConfig(mask_rate=0.6, final_mask_rate=0.1))
    loader = loader_of(split, room=40, batch_tokens=4200, targets=targets)

    def rate(step: int, total_steps: int) -> float:
        held = content(loader.micro_batches(step, total_steps))
        return len(held.target_ids) / (len(held.token_ids) - 2 * len(held.lengths))

    spread = 5 * 0.5 / np.sqrt(4000)
    assert rate(0, 11) == pytest.approx(0.6, abs=spread)
    assert rate(5, 11) == pytest.approx(0.35, abs=spread)
    assert rate(10, 11) == pytest.approx(0.1, abs=spread)
    assert rate(10, 101) == pytest.approx(0.55, abs=spread)
    assert content(loader.micro_batches(5, 11)) == content(loader.micro_batches(5, 11))
    with pytest.raises(ValueError, match="the run's steps"):
        loader.micro_batches(5)


def test_a_fixed_mask_rate_does_not_ask_how_long_the_run_is() -> None:
    loader = loader_of(_split())
    assert (
        content(loader.micro_batches(3)) == content(loader.micro_batches(3, 10)) == content(loader.micro_batches(3, 99))
    )


def test_plain_tokens_are_the_text_and_ask_for_nothing() -> None:
    split = _split()
    masked, plain = loader_of(split), loader_of(split, targets=PlainTokens())
    for step in range(3):
        held, shown = content(masked.micro_batches(step)), content(plain.micro_batches(step))
        held.token_ids[held.target_positions] = held.target_ids
        assert np.array_equal(shown.token_ids, held.token_ids)
        assert np.array_equal(shown.lengths, held.lengths)
        assert all(batch.num_targets == 0 for batch in plain.micro_batches(step))


@pytest.mark.parametrize("unit", ["whole_word", "ngram", "span"])
@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_words_are_selected_whole_with_every_tokenizer(algorithm: str, unit: str, tmp_path: Path) -> None:
    tokenizer, sequence_format = made_tokenizer(algorithm), made_format(algorithm)
    # Capitals, names and punctuation that the small vocabularies cut into many pieces.
    texts = [text.replace("waited", "Zanzibar's (unwatched)") for text in made_texts(40, sentences=(1, 1))]
    split = made_corpus(tmp_path / "corpus", texts, algorithm=algorithm).split("train")
    loader = PretrainingLoader(
        split,
        lambda epoch: document_sentences(split, 62),
        sequence_format,
        targets=MaskedTargets(MaskingConfig.parse({"unit": unit, "mask_rate": 0.3}, where="a test")),
        batch_tokens=split.num_tokens,
        micro_batch_tokens=10**6,
        seed=0,
    )
    words_of = {tuple(encoding.token_ids.tolist()): encoding.word_ids for encoding in map(tokenizer.encode, texts)}
    for step in range(3):
        held = content(loader.micro_batches(step))
        selected = np.zeros(len(held.token_ids), bool)
        selected[held.target_positions] = True
        true = held.token_ids.copy()
        true[held.target_positions] = held.target_ids
        several = 0
        for start, end in pairwise([0, *np.cumsum(held.lengths).tolist()]):
            words = words_of[tuple(true[start:end].tolist())]
            chosen = selected[start:end]
            assert chosen.any()
            assert not chosen[words < 0].any()
            for word in set(words[words >= 0].tolist()):
                assert len(set(chosen[words == word].tolist())) == 1
                several += (words == word).sum() > 1
        assert several > 20
