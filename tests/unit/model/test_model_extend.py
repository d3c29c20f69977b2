"""New tokens begin as the mean of the pieces they replace, in every weight that has a row for each token."""

import pytest
import torch
from small_models import small_model

from bertsmith.model import HeadsConfig
from bertsmith.model.extend import with_more_tokens

PIECES = [[3, 7], [4, 4, 9], [11]]


@pytest.mark.parametrize("tied", [True, False])
def test_every_weight_with_a_row_for_each_token_gets_the_mean(tied: bool) -> None:
    model = small_model(heads=HeadsConfig(tie_embeddings=tied))
    names = ["encoder.embeddings.token.weight", "masked_language_model.bias"]
    names += [] if tied else ["masked_language_model.untied"]
    larger = with_more_tokens(model, PIECES, first_id=50)
    assert larger.config.encoder.vocab_size == 53
    before, after = model.state_dict(), larger.state_dict()
    assert before.keys() == after.keys()
    for name, value in after.items():
        if name not in names:
            torch.testing.assert_close(value, before[name], atol=0, rtol=0)
            continue
        torch.testing.assert_close(value[:50], before[name], atol=0, rtol=0)
        for number, pieces in enumerate(PIECES):
            torch.testing.assert_close(value[50 + number], before[name][pieces].mean(0))
    head = larger.masked_language_model
    assert head is not None
    assert (head.projection is larger.encoder.embeddings.token.weight) == tied


def test_rows_that_only_pad_the_vocabulary_are_used_first() -> None:
    model = small_model()
    larger = with_more_tokens(model, PIECES, first_id=48)
    assert larger.config.encoder.vocab_size == 51
    weight = model.encoder.embeddings.token.weight
    torch.testing.assert_close(larger.encoder.embeddings.token.weight[48], weight[[3, 7]].mean(0))
    assert with_more_tokens(model, PIECES, first_id=40).config.encoder.vocab_size == 50


def test_the_model_that_is_extended_stays_as_it_was() -> None:
    model = small_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with_more_tokens(model.eval(), PIECES, first_id=48)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model.training


@pytest.mark.parametrize("pieces", [[[]], [[3], [50]], [[-1]]])
def test_a_token_without_pieces_that_the_model_knows_is_refused(pieces: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="Each new token must replace"):
        with_more_tokens(small_model(), pieces, first_id=50)
