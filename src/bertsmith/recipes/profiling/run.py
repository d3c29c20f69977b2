"""Profiling a pre-training or a fine-tuning: its own first steps are taken, measured and forgotten."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertsmith.batches.batch import Batch
from bertsmith.batches.sequence_format import SequenceFormat
from bertsmith.engine.device import Device, choose_device, notes_on_kernels
from bertsmith.engine.memory import peak_memory_bytes
from bertsmith.engine.rates import measured_rates
from bertsmith.foundation.errors import InputError
from bertsmith.model.build import num_parameters
from bertsmith.objectives.report import Objective
from bertsmith.planning.floor import work_of_step
from bertsmith.recipes.finetuning import begin as finetuning
from bertsmith.recipes.finetuning.given import Given
from bertsmith.recipes.finetuning.options import FinetuneConfig
from bertsmith.recipes.pretraining import begin as pretraining
from bertsmith.recipes.pretraining.checks import refuse_early
from bertsmith.recipes.pretraining.choosing import chosen_settings, is_to_be_chosen, with_settings
from bertsmith.recipes.pretraining.corpus import corpus_of_run
from bertsmith.recipes.pretraining.data import OBJECTIVES
from bertsmith.recipes.pretraining.options import PretrainConfig
from bertsmith.recipes.pretraining.start_defaults import with_start_defaults
from bertsmith.recipes.pretraining.start_encoder import refuse_unknown_start
from bertsmith.recipes.profiling.files import refuse_unfit_folder, write_profile
from bertsmith.recipes.profiling.profile import Job, Machine, Profile, Subject, profile_of
from bertsmith.recipes.run_folder import RunFolder
from bertsmith.recipes.settings import RuntimeConfig
from bertsmith.recipes.step_budget import steps_without_clock
from bertsmith.training.config import LoopConfig
from bertsmith.training.step import TrainState
from bertsmith.training.step_times import WARMUP_BATCHES, middle_half, time_steps

Notify = Callable[[str], None]
OnStep = Callable[[int, int], None]
DEFAULT_STEPS = 20
_DOUBTFUL_DIFFERENCE = 0.05
"""Share by which watched steps may differ from the others before it is said."""


def profile_pretraining(
    config: PretrainConfig,
    *,
    steps: int = DEFAULT_STEPS,
    out: str | Path | None = None,
    notify: Notify = lambda message: None,
    on_step: OnStep = lambda done, total: None,
) -> Profile:
    """See where the time of a step of a pre-training goes. Text is prepared in a temporary folder; nothing of it stays.

    Args:
        config: the pre-training; with a time and no model, of what would be chosen for it.
        steps: how many steps are watched; as many more are not, and a few of both come before them.
        out: a folder into which what was found is written, as `write_profile` does it.
        notify: is told in a line what is being done.
        on_step: is told how many steps are done, of how many.

    Raises:
        InputError: if something given cannot be used, as in pre-training; mostly before any work begins.
    """
    _refuse_unfit(steps, out)
    refuse_unknown_start(config.model)
    refuse_early(with_start_defaults(config))
    device = _device(config.runtime)
    if is_to_be_chosen(config):
        config = with_settings(config, chosen_settings(config, device, notify))
    config = with_start_defaults(config)
    # Windows does not remove a corpus that is open.
    with tempfile.TemporaryDirectory(prefix="bertsmith-profile-", ignore_cleanup_errors=True) as folder:
        corpus, tokenizer = corpus_of_run(config, RunFolder(Path(folder) / "run", config), notify)
        for note in (*(f"note: {warning}" for warning in corpus.warnings), *notes_on_kernels(device)):
            notify(note)
        data = pretraining.data_of_run(config, corpus, SequenceFormat.of(tokenizer))
        training = _Training(
            state=pretraining.first_state(config, corpus, tokenizer, device, notify),
            objective=OBJECTIVES[config.objective],
            make=data.train.micro_batches,
            config=config.training,
            total_steps=steps_without_clock(
                config.length,
                default_epochs=pretraining.DEFAULT_EPOCHS,
                batches_per_epoch=data.train.batches_per_epoch,
            ),
            device=device,
        )
        found = training.profile("pretrain", config.objective, config.model.start, steps, on_step)
    return _told(found, out, config.written, notify)


def profile_finetuning(
    config: FinetuneConfig,
    *,
    steps: int = DEFAULT_STEPS,
    out: str | Path | None = None,
    notify: Notify = lambda message: None,
    on_step: OnStep = lambda done, total: None,
) -> Profile:
    """See where the time of a step of a fine-tuning goes.

    Args:
        config: the fine-tuning; of several seeds the first.
        steps: as in `profile_pretraining`, and so are the others.
        out: a folder for what was found.
        notify: is told in a line what stands out.
        on_step: is told how many steps are done.

    Raises:
        InputError: if something given cannot be used, as in fine-tuning.
    """
    _refuse_unfit(steps, out)
    choose_device(config.runtime.device, "fp32")
    config = config.with_seed(config.training.seed)
    given = Given.of(config)
    device = _device(config.runtime)
    batches = given.batches(config)
    for note in (*given.examples.notes, *batches.notes, *notes_on_kernels(device)):
        notify(note)
    loop_config = finetuning.loop_config_of(config, given)
    training = _Training(
        state=finetuning.first_state(config, loop_config, given, device, notify),
        objective=given.task.objective(given.data.train, given.data.labels, config),
        make=lambda step, total_steps: batches.train.micro_batches(step),
        config=loop_config,
        total_steps=steps_without_clock(
            config.length,
            default_epochs=given.default_epochs(batches.train.num_tokens),
            batches_per_epoch=batches.train.batches_per_epoch,
        ),
        device=device,
    )
    found = training.profile("finetune", config.task, config.model, steps, on_step)
    return _told(found, out, config.written, notify)


@dataclass(frozen=True, kw_only=True)
class _Training:
    """A training that is about to begin."""

    state: TrainState
    objective: Objective
    make: Callable[[int, int], tuple[Batch, ...]]
    config: LoopConfig
    total_steps: int
    device: Device

    def profile(self, job: Job, task: str, model_name: str, steps: int, on_step: OnStep) -> Profile:
        """Measure its first steps, and the machine."""
        times = time_steps(
            self.state,
            self.objective,
            self.make,
            config=self.config,
            device=self.device,
            steps=steps,
            # More steps than a short run has go by the schedule of a run that has them.
            total_steps=max(self.total_steps, steps + WARMUP_BATCHES),
            on_step=on_step,
        )
        # Measuring the machine takes memory of its own.
        peak = peak_memory_bytes()
        model = self.state.model
        return profile_of(
            Subject(job, task, model_name, model.config.encoder.family, num_parameters(model)),
            Machine.of(self.device),
            times,
            [
                work_of_step(model, step.batches, self.objective, self.config.optimizer)
                for step in middle_half(times.plain)
            ],
            rates=measured_rates(self.device),
            peak_memory_bytes=peak,
        )


def _refuse_unfit(steps: int, out: str | Path | None) -> None:
    if steps < 1:
        raise InputError("--steps must be 1 or more", steps, "Leave it out for 20.")
    if out is not None:
        refuse_unfit_folder(Path(out))


def _device(runtime: RuntimeConfig) -> Device:
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    return choose_device(runtime.device, runtime.precision)


def _told(profile: Profile, out: str | Path | None, settings: dict[str, Any], notify: Notify) -> Profile:
    """The profile, written where that is wanted, and doubts about it said."""
    difference = profile.steps.watched_ms / profile.steps.plain_ms - 1
    if abs(difference) > _DOUBTFUL_DIFFERENCE:
        notify(
            f"note: steps whose parts were watched differ by {difference:+.0%} from the others, and watching costs "
            "less than that but in a tiny model: something else was at work, so try again when the machine is quiet"
        )
    if out is not None:
        write_profile(Path(out), profile, settings)
    return profile
