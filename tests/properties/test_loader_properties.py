"""For any corpus and any budget: nothing lost, nothing twice, nothing empty, and cuts change nothing."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.batches.loader import PretrainingLoader
from bertsmith.batches.targets import MaskedTargets
from bertsmith.examples.masking import MaskingConfig
from bertsmith.examples.pretraining import document_sentences
from made_corpora import made_format, made_split

FORMAT = made_format()
_documents = st.lists(st.lists(st.integers(1, 20), min_size=1, max_size=6), min_size=1, max_size=12)


def _loader(documents: list[list[int]], batch_tokens: int, micro_batch_tokens: int, seed: int) -> PretrainingLoader:
    split = made_split(documents)
    examples = document_sentences(split, 14)
    return PretrainingLoader(
        split,
        lambda epoch: examples,
        FORMAT,
        targets=MaskedTargets(MaskingConfig()),
        batch_tokens=batch_tokens,
        micro_batch_tokens=micro_batch_tokens,
        seed=seed,
    )


@settings(deadline=None, max_examples=60)
@given(_documents, st.integers(32, 200), st.integers(1, 200), st.integers(0, 2**63), st.integers(0, 3))
def test_every_epoch_holds_every_token_once(
    documents: list[list[int]], batch_tokens: int, micro_batch_tokens: int, seed: int, epoch: int
) -> None:
    loader = _loader(documents, batch_tokens, micro_batch_tokens, seed)
    shown: Counter[int] = Counter()
    for step in range(epoch * loader.batches_per_epoch, (epoch + 1) * loader.batches_per_epoch):
        parts = loader.micro_batches(step)
        assert parts
        for batch in parts:
            assert 0 < batch.packed.num_tokens <= max(micro_batch_tokens, 16)
            tokens = batch.packed.token_ids[: batch.packed.num_tokens].clone()
            places = batch.target_positions[: batch.num_targets]
            assert batch.num_targets >= batch.packed.num_sequences

            tokens[places] = batch.target_ids[: batch.num_targets]
            shown.update(tokens[tokens >= 10].tolist())
    total = sum(sum(document) for document in documents)
    assert shown == Counter(range(10, 10 + total))
