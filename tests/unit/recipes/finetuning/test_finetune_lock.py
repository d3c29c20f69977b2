"""Two fine-tunings in one folder at once."""

import os
from pathlib import Path

import pytest
from finetune_parts import config_of, fill_work

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.finetuning.run import finetune_run
from bertsmith.recipes.inspect_folder import info
from bertsmith.training.events import Event, Progress

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_run_cannot_be_joined_nor_begun_anew_while_it_runs_and_can_be_looked_at(tmp_path: Path, seeds: int) -> None:
    config = config_of(fill_work(tmp_path), seeds=seeds)
    out, refused = tmp_path / "out", 0

    def meddle(event: Event) -> None:
        nonlocal refused
        if not isinstance(event, Progress):
            return
        for restart in (False, True):
            with pytest.raises(InputError, match="One process at a time"):
                finetune_run(config, out, restart=restart)
            refused += 1
        for seed in range(seeds) if seeds > 1 else ():
            place = out / f"seed-{seed}"
            if place.is_dir() and not (place / "model").is_dir():
                with pytest.raises(InputError, match="One process at a time"):
                    finetune_run(config.with_seed(seed), place)
                refused += 1
        assert info(out)["finished"] is False

    run = finetune_run(config, out, observers=[meddle])
    assert refused >= 2 * seeds
    assert finetune_run(config, out).metrics == run.metrics
    assert not finetune_run(config, out, restart=True).already_finished
