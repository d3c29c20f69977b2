"""A model that was exported as an ONNX graph, run by onnxruntime on the CPU."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int

from bertsmith.foundation.errors import InputError
from bertsmith.inference.engine import TASKS_OF_TOKENS, Engine, Job, job_of, refuse_unfit
from bertsmith.inference.running import TokenWindow, members_of_batches
from bertsmith.model.config import ModelConfig, TaskName

TOKENS, MASK, SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
"""Names of the inputs, each int64 ``[batch, sequence]``; the last one where the model tells segments apart."""
SCORES, STARTS, ENDS = "logits", "start_logits", "end_logits"
HIDDEN, EMBEDDING = "last_hidden_state", "sentence_embedding"
MAX_BATCH_TOKENS = 1_024
"""With padding: what a layer makes of so many stays in the caches, and four times as many took 1.6 times as long."""
_MAX_SCORES = 1 << 26
"""Scores over the vocabulary that are made at once: 256 MiB."""


@runtime_checkable
class Session(Protocol):
    """What runs a graph, as onnxruntime's ``InferenceSession``."""

    def run(self, output_names: Any, input_feed: Any) -> Any:
        """The outputs of these names."""
        ...

    def get_inputs(self) -> Any:
        """What the graph takes."""
        ...

    def get_outputs(self) -> Any:
        """What the graph gives."""
        ...


class OnnxEngine(Engine):
    """Runs an exported graph.

    Args:
        session: the graph, open.
        config: what the model is, with the heads that the graph has.
        precision: of its matrix products, ``fp32`` or ``int8``.

    Raises:
        InputError: if the graph's inputs and outputs are not those of such a model.
    """

    def __init__(self, session: Session, config: ModelConfig, precision: str) -> None:
        self._session = session
        self._config = config
        self._precision = precision
        self._job = job_of(config)
        expected = (set(input_names(config)), set(output_names(self._job)))
        found = tuple({one.name for one in side} for side in (session.get_inputs(), session.get_outputs()))
        if found != expected:
            raise InputError(
                f"A graph that is exported to {self._job} takes {', '.join(sorted(expected[0]))} and gives "
                f"{', '.join(sorted(expected[1]))}",
                f"one that takes {', '.join(sorted(found[0]))} and gives {', '.join(sorted(found[1]))}",
                "Export the model anew.",
            )

    @property
    def config(self) -> ModelConfig:
        """What the model is."""
        return self._config

    @property
    def precision(self) -> str:
        """Of its matrix products."""
        return self._precision

    def refuse_other(self, job: Job) -> None:
        """Raise an `InputError` unless the graph was exported for a job: it has one head and no other."""
        if job == self._job:
            return
        if self._job in ("fill", "embed") and self._config.heads.task is None and job not in ("fill", "embed"):
            refuse_unfit(job, None)
        raise InputError(
            f"{job} needs a folder that was exported for it",
            f"one that was exported to {self._job}",
            f"Use: bertsmith {self._job} DIR, or give the model folder that it was exported from.",
        )

    def outputs(self, task: TaskName, windows: Sequence[TokenWindow]) -> list[Float[np.ndarray, "..."]]:
        """What the head of a task says of each window."""
        self.refuse_other(task)
        names = (STARTS, ENDS) if task == "answer" else (EMBEDDING,) if task == "embed" else (SCORES,)
        found: list[np.ndarray] = [np.empty(0, np.float32)] * len(windows)
        for members, results in self._results(names, windows, MAX_BATCH_TOKENS):
            rows = np.stack(results, axis=-1) if task == "answer" else results[0]
            for member, row in zip(members, rows, strict=True):
                # A copy, so that one short window does not keep its batch in memory.
                found[member] = row[: len(windows[member].token_ids)].copy() if task in TASKS_OF_TOKENS else row
        return found

    def vocabulary(
        self, windows: Sequence[TokenWindow], positions: Sequence[Sequence[int]]
    ) -> list[Float[np.ndarray, "_ vocabulary"]]:
        """Scores over the vocabulary at some positions of each window."""
        self.refuse_other("fill")
        found: list[np.ndarray] = [np.empty(0, np.float32)] * len(windows)
        max_tokens = max(1, min(MAX_BATCH_TOKENS, _MAX_SCORES // self._config.encoder.vocab_size))
        for members, (scores,) in self._results((SCORES,), windows, max_tokens):
            for row, member in zip(scores, members, strict=True):
                found[member] = row[np.asarray(positions[member], np.int64)]
        return found

    def _results(
        self, names: Sequence[str], windows: Sequence[TokenWindow], max_tokens: int
    ) -> Iterator[tuple[list[int], list[np.ndarray]]]:
        for members in members_of_batches(windows, max_tokens, padded=True):
            given = padded([windows[member] for member in members], self._config)
            yield members, self._session.run(list(names), given)


def input_names(config: ModelConfig) -> tuple[str, ...]:
    """The inputs of a model's graph."""
    return (TOKENS, MASK, SEGMENTS) if config.encoder.type_vocab_size > 1 else (TOKENS, MASK)


def output_names(job: Job) -> tuple[str, ...]:
    """The outputs of a graph that does a job: scores per sequence, token or place of the vocabulary, or vectors."""
    match job:
        case "answer":
            return (STARTS, ENDS)
        case "embed":
            return (HIDDEN, EMBEDDING)
        case _:
            return (SCORES,)


def padded(windows: Sequence[TokenWindow], config: ModelConfig) -> dict[str, Int[np.ndarray, "batch sequence"]]:
    """Windows as the inputs of a model's graph, padded at their ends to the longest one."""
    longest = max(len(window.token_ids) for window in windows)
    arrays = {name: np.zeros((len(windows), longest), np.int64) for name in input_names(config)}
    arrays[TOKENS] += config.encoder.pad_token_id
    for row, window in enumerate(windows):
        length = len(window.token_ids)
        arrays[TOKENS][row, :length] = window.token_ids
        arrays[MASK][row, :length] = 1
        if SEGMENTS in arrays:
            arrays[SEGMENTS][row, :length] = window.segment_ids
    return arrays


def open_session(graph: Path) -> Session:
    """Open a graph, to be run on the CPU with as many threads as torch uses.

    Raises:
        InputError: if onnxruntime is not installed, or cannot open the file.
    """
    try:
        import onnxruntime
    except ImportError:
        raise without_package("onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that wait by spinning slow down whoever else needs their core.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # Each of its kinds of error is a class of its own, and none is public.
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{graph.name} must be a graph that onnxruntime opens", f"{graph} ({reason})", "Export the model anew."
        ) from error


def without_package(name: str) -> InputError:
    """The error for a package of the extra that is not installed."""
    return InputError(
        "Exporting a model, and running an exported one, needs onnx and onnxruntime",
        f"an installation without {name}",
        'Install them: pip install "bertsmith[export]"',
    )
