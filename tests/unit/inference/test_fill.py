"""Filling masks."""

import numpy as np
import pytest
import torch

from bertsmith.engine.device import Device
from bertsmith.foundation.errors import InputError
from bertsmith.inference import fill
from bertsmith.inference.fill import FillPredictor, MaskPrediction
from bertsmith.inference.torch_engine import TorchEngine
from bertsmith.model import PackedTokens
from bertsmith.tokenization.tokenizer import Tokenizer
from made_corpora import WORDS, made_model, made_tokenizer

CPU = Device("cpu", "fp32")
TOKENIZER = made_tokenizer()
POSITIONS = 32


def _predictor(algorithm: str = "wordpiece", *, positions: int = POSITIONS, learned: int = POSITIONS) -> FillPredictor:
    tokenizer = made_tokenizer(algorithm).seeing(learned)
    return FillPredictor(TorchEngine(made_model(tokenizer.vocab_size, positions=positions, spread=0.3), CPU), tokenizer)


PREDICTOR = _predictor()


@torch.no_grad()
def _probabilities(ids: np.ndarray, position: int, tokenizer: Tokenizer = TOKENIZER) -> np.ndarray:
    """The model's scores for one sequence by itself, by the book."""
    model = made_model(tokenizer.vocab_size, positions=POSITIONS, spread=0.3).eval()
    head = model.masked_language_model
    assert head is not None
    packed = PackedTokens.build(ids, np.zeros_like(ids), np.array([0, len(ids)]))
    return torch.softmax(head(model.head_input(packed)[position : position + 1]), -1)[0].numpy()


def _scores(prediction: MaskPrediction) -> list[float]:
    return [completion.score for completion in prediction.predictions]


def test_scores_are_the_models_probabilities_the_best_first() -> None:
    text = "The old [MASK] waited."
    (found,) = PREDICTOR([text], top_k=TOKENIZER.vocab_size)
    encoding = TOKENIZER.encode(text, mask_is_special=True)
    place = int(np.flatnonzero(encoding.token_ids == TOKENIZER.mask_id)[0])
    expected = _probabilities(encoding.token_ids, place)
    assert len(found.predictions) == TOKENIZER.vocab_size - len(TOKENIZER.special_ids)
    for completion in found.predictions:
        assert completion.score == pytest.approx(expected[completion.token_id], abs=1e-6)
        assert completion.token == TOKENIZER.token(completion.token_id)
        assert completion.token_id not in TOKENIZER.special_ids
    assert _scores(found) == sorted(_scores(found), reverse=True)


def test_several_masks_and_texts_come_back_in_order() -> None:
    texts = ["[MASK] old [MASK] waited [MASK]", "Rain [MASK]."]
    found = PREDICTOR(texts, top_k=2)
    assert [(prediction.text, prediction.mask_index) for prediction in found] == [
        (texts[0], 0),
        (texts[0], 1),
        (texts[0], 2),
        (texts[1], 0),
    ]
    for prediction in found:
        best = prediction.words[0]
        before, _, after = prediction.text.partition("[MASK]")
        for _ in range(prediction.mask_index):
            more, _, after = after.partition("[MASK]")
            before = f"{before}[MASK]{more}"
        assert best.sequence == f"{before}{best.token}{after}"
        assert len(prediction.predictions) == len(prediction.words) == 2


def test_one_text_may_be_given_by_itself() -> None:
    assert PREDICTOR("Rain [MASK].", top_k=2) == PREDICTOR(["Rain [MASK]."], top_k=2)


def test_a_text_alone_scores_as_beside_long_neighbours() -> None:
    short = "The old [MASK] waited."
    long = " ".join(["The old river carried every small boat"] * 8) + " [MASK]."
    (alone,) = PREDICTOR([short], top_k=20)
    beside = PREDICTOR([long, short, long], top_k=20)[1]
    assert _scores(beside) == pytest.approx(_scores(alone), abs=1e-5)
    assert [completion.token for completion in beside.predictions] == [c.token for c in alone.predictions]


def test_a_long_text_is_seen_through_a_window_around_the_mask() -> None:
    words = ("the old small river harbour garden winter morning " * 12).split()
    for place in (0, 3, 50, len(words)):
        text = " ".join([*words[:place], "[MASK]", *words[place:]])
        encoding = TOKENIZER.encode(text, mask_is_special=True)
        assert len(encoding) > 3 * POSITIONS
        mask = int(np.flatnonzero(encoding.token_ids == TOKENIZER.mask_id)[0])
        start = min(max(mask - (POSITIONS - 2) // 2, 1), len(encoding) - 1 - (POSITIONS - 2))
        window = np.concatenate(
            [encoding.token_ids[:1], encoding.token_ids[start : start + POSITIONS - 2], encoding.token_ids[-1:]]
        )
        expected = _probabilities(window, mask - start + 1)
        (found,) = PREDICTOR([text], top_k=5)
        for completion in found.predictions:
            assert completion.score == pytest.approx(expected[completion.token_id], abs=1e-6)
        assert text.replace("[MASK]", found.words[0].token) == found.words[0].sequence


@pytest.mark.parametrize("top_k", [0, -1, TOKENIZER.vocab_size + 1])
def test_top_k_outside_its_bounds_is_refused(top_k: int) -> None:
    with pytest.raises(InputError, match=rf"--top-k must lie between 1 and .*{TOKENIZER.vocab_size}"):
        PREDICTOR(["The [MASK]."], top_k=top_k)


def test_a_text_without_a_mask_is_refused() -> None:
    with pytest.raises(InputError, match=r"must hold a mask.*Rain fell"):
        PREDICTOR(["The [MASK].", "Rain fell."])


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_words_begin_a_word_and_hold_a_letter(algorithm: str) -> None:
    tokenizer = made_tokenizer(algorithm)
    (found,) = _predictor(algorithm)(["The old [MASK] waited."], top_k=tokenizer.vocab_size)
    assert found.words
    for completion in found.words:
        assert not completion.token.startswith("##")
        assert not tokenizer.continues_word[completion.token_id]
        assert any(character.isalpha() for character in tokenizer.decode([completion.token_id]))
    assert any(tokenizer.continues_word[completion.token_id] for completion in found.predictions)


def test_a_piece_that_goes_on_with_a_word_is_joined_to_it() -> None:
    (found,) = PREDICTOR(["The old [MASK] waited."], top_k=TOKENIZER.vocab_size)
    joined = next(completion for completion in found.predictions if completion.token.startswith("##"))
    assert joined.sequence == f"The old{joined.token.removeprefix('##')} waited."


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
def test_a_target_of_one_piece_has_the_probability_of_that_piece(algorithm: str) -> None:
    predictor, tokenizer = _predictor(algorithm), made_tokenizer(algorithm)
    text = "The old [MASK] waited."
    (everything,) = predictor([text], top_k=tokenizer.vocab_size)
    single = [completion for completion in everything.words if len(completion.token) > 3][:3]
    assert len(single) == 3
    words = [tokenizer.decode([completion.token_id]).strip() for completion in single]
    (found,) = predictor([text], targets=words)
    assert [completion.token_id for completion in found.predictions] == [completion.token_id for completion in single]
    ids = [completion.token_id for completion in everything.predictions]
    assert [completion.rank for completion in everything.predictions] == list(range(1, len(ids) + 1))
    assert [completion.rank for completion in found.predictions] == [ids.index(c.token_id) + 1 for c in single]
    assert _scores(found) == pytest.approx([completion.score for completion in single], abs=1e-6)
    assert [completion.sequence for completion in found.predictions] == [f"The old {word} waited." for word in words]
    assert found.words == ()


@pytest.mark.parametrize("algorithm", ["wordpiece", "bpe", "unigram"])
@pytest.mark.parametrize("target", ["harbours", "small river", "winterly gardens"])
def test_a_target_of_several_pieces_is_scored_whole(algorithm: str, target: str) -> None:
    predictor, tokenizer = _predictor(algorithm), made_tokenizer(algorithm)
    (found,) = predictor(["The old [MASK] waited."], targets=[target])
    (completion,) = found.predictions
    encoding = tokenizer.encode(f"The old {target} waited.")
    before, whole = (len(tokenizer.encode(part)) - 2 for part in ("The old", f"The old {target}"))
    places = list(range(1 + before, 1 + whole))
    assert len(places) > 1
    expected = 1.0
    ids = encoding.token_ids.copy()
    ids[places] = tokenizer.mask_id
    for place in places:
        expected *= float(_probabilities(ids, place, tokenizer)[encoding.token_ids[place]])
        ids[place] = encoding.token_ids[place]
    assert completion.score == pytest.approx(expected, rel=1e-4)
    assert completion.token_id == -1
    assert completion.rank is None
    assert completion.token == target


def test_the_window_is_no_longer_than_what_the_model_was_trained_on() -> None:
    predictor = _predictor(positions=2 * POSITIONS, learned=POSITIONS)
    (request,) = predictor.prepare("the old river " * 20 + "[MASK]" + " the old river" * 20)
    assert len(request.window.token_ids) == POSITIONS


def test_a_target_of_several_pieces_fits_into_the_window_at_any_place_of_a_long_text() -> None:
    words = ("the old small river harbour garden winter morning " * 12).split()
    target = " ".join(["river"] * (POSITIONS - 2))
    for place in (0, 50, len(words)):
        text = " ".join([*words[:place], "[MASK]", *words[place:]])
        (found,) = PREDICTOR([text], targets=["small river garden", target])
        assert all(0 < completion.score < 1 for completion in found.predictions)
    with pytest.raises(InputError, match="longer than"):
        PREDICTOR(["The [MASK]."], targets=[f"{target} river"])


@pytest.mark.parametrize("target", ["東京", "", "  ", "[MASK]", "old [MASK]"])
def test_a_target_that_the_vocabulary_cannot_write_is_refused(target: str) -> None:
    with pytest.raises(InputError, match="written in the model's vocabulary"):
        PREDICTOR(["The old [MASK] waited."], targets=["river", target])


def test_targets_are_ranked_and_told_once() -> None:
    (found,) = PREDICTOR(["The old [MASK] waited."], targets=["river", "boat", "river"])
    assert sorted(completion.token for completion in found.predictions) == ["boat", "river"]
    assert _scores(found) == sorted(_scores(found), reverse=True)


def test_special_tokens_written_in_the_text_stay_text() -> None:
    (request,) = PREDICTOR.prepare("The [SEP] old [CLS] [MASK] waited.")
    ids = request.window.token_ids.tolist()
    assert ids.count(TOKENIZER.sep_id) == ids.count(TOKENIZER.cls_id) == ids.count(TOKENIZER.mask_id) == 1
    (found,) = PREDICTOR(["The [SEP] old [MASK] waited."], top_k=1)
    assert found.words[0].sequence == f"The [SEP] old {found.words[0].token} waited."


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@pytest.mark.parametrize("text", ["{}", "{} old", "The {}", "The {} waited.", "{}{}", "({})"])
def test_the_hubs_mask_and_the_tokenizers_own_are_the_same_everywhere(algorithm: str, text: str) -> None:
    predictor, tokenizer = _predictor(algorithm), made_tokenizer(algorithm)
    assert tokenizer.mask_token is not None
    own = predictor([text.replace("{}", tokenizer.mask_token)], top_k=3)
    hub = predictor([text.replace("{}", "[MASK]")], top_k=3)
    assert own == hub
    assert len(own) == text.count("{}")
    if algorithm == "bpe":
        assert tokenizer.mask_token == "<mask>"


def test_a_model_without_a_vocabulary_head_is_refused() -> None:
    model = made_model(TOKENIZER.vocab_size)
    model.masked_language_model = None
    with pytest.raises(InputError, match="head over the vocabulary"):
        FillPredictor(TorchEngine(model, CPU), TOKENIZER)


def test_filling_leaves_a_model_in_training_as_it_was() -> None:
    model = made_model(TOKENIZER.vocab_size, dropout=0.5).train()
    predictor = FillPredictor(TorchEngine(model, CPU), TOKENIZER)
    first, second = (predictor(["The old [MASK] waited."]) for _ in range(2))
    assert first == second
    assert model.training


def test_a_text_with_many_masks_and_targets_of_one_piece_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    windows: list[int] = []
    run = FillPredictor.run
    monkeypatch.setattr(
        FillPredictor, "run", lambda self, given, places: windows.append(len(given)) or run(self, given, places)
    )
    PREDICTOR(["[MASK] old [MASK] waited [MASK]", "Rain [MASK]."])
    PREDICTOR(["The old [MASK] waited.", "Rain [MASK]."], targets=["river", "garden", "harbour"])
    assert windows == [2, 2]


def test_the_same_comes_of_portions_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["[MASK] old [MASK] waited", "Rain [MASK].", "The [MASK] garden"]

    def found() -> list[list[float]]:
        return [_scores(one) for one in PREDICTOR(texts) + PREDICTOR(texts, targets=["river", "old river"])]

    at_once = found()
    monkeypatch.setattr(fill, "_MOST_SCORES", 2 * TOKENIZER.vocab_size)
    for some, all_of_them in zip(found(), at_once, strict=True):
        assert some == pytest.approx(all_of_them, abs=1e-6)


def test_a_target_that_grows_together_with_letters_beside_the_mask_is_refused() -> None:
    word = next(word for word in WORDS if len(TOKENIZER.piece_ids([word])[0]) == 1 and len(word) > 3)
    with pytest.raises(InputError, match=f"“{word[1:-1]}” within the piece “{word}”"):
        PREDICTOR(f"{word[0]}[MASK]{word[-1]} waited", targets=word[1:-1])


@pytest.mark.parametrize("targets", ["", " , "])
def test_targets_that_name_nothing_are_refused(targets: str) -> None:
    with pytest.raises(InputError, match="targets must name words"):
        PREDICTOR("Rain [MASK].", targets=targets)
