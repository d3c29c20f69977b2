"""A profile in words: what its parts are called, and its numbers with their units."""

from typing import Any

_TITLES = {
    "waiting": "waiting for the batch",
    "feed_forward": "feed-forward",
    "recurrence": "LSTMs",
    "head_and_loss": "head and loss",
}
_JOBS = {"pretrain": "pre-training, objective", "finetune": "fine-tuning, task"}
_KERNELS = {"all": "with kernels of our own", "without_products": "with kernels, without their products"}


def part_title(part: str) -> str:
    """A part's name, for people."""
    return _TITLES.get(part, part)


def milliseconds(value: float | None) -> str:
    """As many digits as tell something; nothing for what there is not."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def profile_lead(values: dict[str, Any]) -> str:
    """One line about what was measured.

    Args:
        values: a `Profile` as plain values.
    """
    subject, machine = values["subject"], values["machine"]
    threads = f"{machine['threads']} thread{'s' if machine['threads'] != 1 else ''}"
    kernels = _KERNELS.get(machine["kernels"], "without kernels of our own")
    return (
        f"A step of {_JOBS[subject['job']]} {subject['task']}: {subject['model']}, {subject['family']}, "
        f"{subject['parameters']:,} parameters; on {machine['device']} in {machine['precision']}, {threads}, {kernels}"
    )


def profile_facts(values: dict[str, Any]) -> dict[str, str]:
    """What is told beside the parts, by name.

    Args:
        values: a `Profile` as plain values.
    """
    steps, batch, floor = values["steps"], values["batch"], values["floor"]
    facts = {
        "step as training takes it": f"{milliseconds(steps['plain_ms'])} ms, the {steps['measured']} of them from "
        f"{milliseconds(steps['fastest_ms'])} to {milliseconds(steps['slowest_ms'])}",
        "while its parts are watched": f"{milliseconds(steps['watched_ms'])} ms "
        f"({steps['watched_ms'] / steps['plain_ms'] - 1:+.1%})",
        "floor": f"{milliseconds(floor['ms'])} ms, {floor['fraction']:.0%} of the step",
        "tokens a second": f"{values['tokens_per_second']:,.0f}",
        "tokens of a step": f"{batch['tokens']:,.0f} in {batch['sequences']:,.0f} sequences, "
        f"{batch['forward_passes']:g} forward pass{'es' if batch['forward_passes'] != 1 else ''}",
        "padding": f"none; {batch['filling_share']:.1%} of the rows make shapes round",
        "making a batch": f"{milliseconds(batch['making_ms'])} ms, in the background",
    }
    if values["peak_memory_bytes"] is not None:
        facts["peak memory"] = f"{values['peak_memory_bytes'] / 2**30:.2f} GiB, preparing included"
    if steps["without_update"]:
        facts["steps that moved no weight"] = f"{steps['without_update']:,}"
    return facts


def floor_facts(values: dict[str, Any]) -> dict[str, str]:
    """What the floor is made of, by name.

    Args:
        values: a `Profile` as plain values.
    """
    floor = values["floor"]
    precision = values["machine"]["precision"]
    facts = {
        "matrix products of the model": f"{floor['operations'] / 1e9:,.1f} GFLOP",
        f"rate of a large product in {precision}": f"{floor['operations_per_second'] / 1e9:,.0f} GFLOP/s",
        "moved by the optimizer": f"{floor['optimizer_bytes'] / 1e6:,.1f} MB",
        "rate of copying": f"{floor['bytes_per_second'] / 1e9:,.1f} GB/s",
    }
    if floor["optimizer_operations"]:
        facts["matrix products of Muon"] = f"{floor['optimizer_operations'] / 1e9:,.1f} GFLOP"
        facts["rate of a large product in bf16"] = f"{floor['bf16_operations_per_second'] / 1e9:,.0f} GFLOP/s"
    return facts
