"""The encoder of a folder as a torch module."""

from pathlib import Path

import numpy as np
import pytest
import torch

import bertsmith
from bertsmith import Encoder, InputError, PackedTokens
from bertsmith.folders.model_folder import read_model
from made_corpora import made_tokenizer
from made_tasks import made_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("encoder") / "run"
    run.mkdir()
    made_encoder(run / "model")
    (run / "run.toml").write_text("", encoding="utf-8")
    return run / "model"


def test_an_encoder_out_of_a_folder_gives_what_the_model_gives_in_eval_mode(folder: Path) -> None:
    encoder = Encoder.from_folder(str(folder))
    assert isinstance(encoder, torch.nn.Module)
    assert not encoder.training
    text = made_tokenizer().encode("the boat walked")
    ids = torch.tensor(text.token_ids)[None].long()
    packed = PackedTokens.build(text.token_ids, text.segment_ids, np.array([0, len(text)]))
    expected = read_model(folder).model.encoder.packed(packed)
    torch.testing.assert_close(encoder(ids)[0], expected)
    torch.testing.assert_close(encoder.packed(packed), expected)
    wide = torch.cat([ids, torch.zeros_like(ids)], 1)
    padded = encoder(wide, attention_mask=torch.arange(wide.shape[1])[None] < len(text))
    torch.testing.assert_close(padded[0, : len(text)], expected)
    assert not padded[0, len(text) :].any()


def test_the_folder_of_a_run_is_its_model_and_the_weights_can_be_saved_and_trained(folder: Path) -> None:
    encoder, same = Encoder.from_folder(folder.parent), Encoder.from_folder(folder)
    assert list(encoder.state_dict()) == list(same.state_dict())
    encoder.load_state_dict({name: value + 1 for name, value in same.state_dict().items()})
    encoder(torch.ones(1, 3, dtype=torch.int64)).sum().backward()
    assert encoder.embeddings.token.weight.grad is not None


def test_an_encoder_that_records_tells_its_attention(folder: Path) -> None:
    encoder = Encoder.from_folder(folder, attention="recording")
    packed = PackedTokens.build(np.arange(4), np.zeros(4, np.int64), np.array([0, 4]))
    (first, *_) = encoder.attention_weights(packed)
    torch.testing.assert_close(first[0].sum(-1), torch.ones(1, 2, 4))


def test_what_holds_no_encoder_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="A model folder must exist"):
        Encoder.from_folder(folder.parent / "modle")
    with pytest.raises(InputError, match=r"holds config\.json"):
        Encoder.from_folder(tmp_path)
    with pytest.raises(InputError, match=r"Received: 65 tokens, 64 positions"):
        Encoder.from_folder(folder)(torch.ones(1, 65, dtype=torch.int64))
    with pytest.raises(InputError, match="another tokenizer"):
        Encoder.from_folder(folder)(torch.full((1, 2), -1))


def test_every_name_is_there_and_known_before_it_is_loaded() -> None:
    assert set(bertsmith.__all__) <= set(dir(bertsmith))
    for name in bertsmith.__all__:
        assert getattr(bertsmith, name).__doc__, name
