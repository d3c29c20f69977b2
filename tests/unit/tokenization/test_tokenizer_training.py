"""Training: the same files every time, nothing seen is unknown, and bad sizes are refused."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_tokenizers import INFLECTED, SENTENCES, trained

from bertsmith.foundation import errors
from bertsmith.tokenization import Tokenizer, TokenizerConfig, train_tokenizer
from bertsmith.tokenization.chunks import chunks

_TRAIN_ALL = """
import sys
from bertsmith.tokenization import TokenizerConfig, train_tokenizer
words = [f"{a}{b}{c}" for a in "abcdéöß한م" for b in "xyzñø국ن" for c in ("ing", "ed", "on", "ات")]
texts = [" ".join(words[start::step]) for start in range(7) for step in range(1, 9)]
for algorithm, size in (("wordpiece", 300), ("bpe", 400), ("unigram", 60)):
    config = TokenizerConfig(algorithm=algorithm, vocab_size=size)
    train_tokenizer(lambda: texts, config).seeing(64).save(f"{sys.argv[1]}/{algorithm}")
"""


def test_new_processes_with_other_thread_counts_write_the_same_bytes(tmp_path: Path) -> None:
    sums: list[dict[str, str]] = []
    for threads in (1, 2, 8):
        out = tmp_path / str(threads)
        environment = {**os.environ, "RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
        subprocess.run([sys.executable, "-c", _TRAIN_ALL, str(out)], check=True, env=environment)
        sums.append(
            {
                path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(out.rglob("*"))
                if path.is_file()
            }
        )
    assert len(sums[0]) == 7
    assert sums[0] == sums[1] == sums[2]


def test_text_seen_in_training_is_never_unknown(tokenizer: Tokenizer) -> None:
    assert tokenizer.summary is not None
    assert tokenizer.summary.num_characters_left_out == 0
    for ids in tokenizer.piece_ids(SENTENCES):
        assert tokenizer.unk_id not in ids


@pytest.mark.parametrize("algorithm", ["wordpiece", "unigram"])
def test_decomposed_hangul_seen_composed_is_not_unknown(algorithm: str) -> None:
    for switches in ({}, {"lowercase": True, "strip_accents": True}):
        tokenizer = trained(algorithm, **switches)
        assert tokenizer.piece_ids(["\u1112\u1161\u11ab국"]) == tokenizer.piece_ids(["한국"])
        assert tokenizer.unk_id not in tokenizer.piece_ids(["한국"])[0]


def test_the_vocabulary_has_exactly_the_size_asked_for(tokenizer: Tokenizer) -> None:
    assert tokenizer.config is not None
    assert tokenizer.vocab_size == tokenizer.config.vocab_size
    assert tokenizer.special_ids == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_a_vocabulary_larger_than_the_text_supports_is_refused(algorithm: str) -> None:
    with pytest.raises(
        errors.InputError, match=r"what the text supports.*vocab_size=9000, and the text gives \d+ pieces"
    ):
        train_tokenizer(lambda: SENTENCES, TokenizerConfig.model_validate({"algorithm": algorithm, "vocab_size": 9000}))


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_a_vocabulary_too_small_for_its_alphabet_is_refused_with_the_size_needed(algorithm: str) -> None:
    with pytest.raises(errors.InputError, match=r"vocab_size must hold .*Use vocab_size=\d+ or more"):
        train_tokenizer(lambda: SENTENCES, TokenizerConfig.model_validate({"algorithm": algorithm, "vocab_size": 40}))


def test_text_without_a_word_is_refused() -> None:
    with pytest.raises(errors.InputError, match="must be text"):
        train_tokenizer(lambda: ["", " \n\u200b"], TokenizerConfig(vocab_size=100))


@pytest.mark.parametrize("algorithm", ["wordpiece", "unigram"])
def test_rare_characters_without_room_are_left_out_counted_and_unknown(algorithm: str) -> None:
    rare = "".join(chr(0x4E00 + number) for number in range(200))
    texts = [*INFLECTED * 50, rare]
    config = TokenizerConfig.model_validate({"algorithm": algorithm, "vocab_size": 120})
    tokenizer = train_tokenizer(lambda: texts, config)
    summary = tokenizer.summary
    assert summary is not None
    assert summary.num_distinct_characters == 200 + len(set("".join(INFLECTED)) - {" "})
    assert 0 < summary.num_characters_left_out < 200
    assert 0 < summary.share_left_out < 0.01
    assert tokenizer.unk_id in tokenizer.piece_ids([rare])[0]
    assert tokenizer.unk_id not in tokenizer.piece_ids(INFLECTED[:1])[0]
    # Ties in frequency are broken by code point: the first of the rare characters are the ones kept.
    assert tokenizer.unk_id not in tokenizer.piece_ids([rare[0]])[0]


def test_texts_are_streamed_and_may_have_no_line_breaks() -> None:
    given = 0

    def texts() -> Iterator[str]:
        nonlocal given
        given += 1
        yield "the same words over and over again " * 20_000

    tokenizer = train_tokenizer(texts, TokenizerConfig(vocab_size=35))
    assert given == 2
    assert tokenizer.unk_id not in tokenizer.piece_ids(["the same words over and over again"])[0]


def test_chunks_are_bounded_keep_every_character_and_part_no_word() -> None:
    words = "word and another " * 20_000
    pieces = list(chunks([words, "", "short"]))
    assert "".join(pieces) == words + "short"
    assert max(map(len, pieces)) <= 100_000
    assert [word for piece in pieces[:-1] for word in piece.split()] == words.split()
    unbroken = "x" * 250_000
    assert [len(piece) for piece in chunks([unbroken])] == [100_000, 100_000, 50_000]


def test_importing_the_package_loads_neither_torch_nor_transformers() -> None:
    code = "import bertsmith.tokenization, sys; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
