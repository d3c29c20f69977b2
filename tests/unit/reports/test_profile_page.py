"""A profile for people: its page needs nothing from elsewhere, and its words say what was measured."""

import copy
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from bertsmith.reports.bars import Bar, bar_chart
from bertsmith.reports.profile_report import profile_report
from bertsmith.reports.profile_words import floor_facts, milliseconds, part_title, profile_facts, profile_lead

VALUES: dict[str, Any] = {
    "subject": {"job": "pretrain", "task": "mlm+nsp", "model": "<b>", "family": "bert", "parameters": 1_300_000},
    "machine": {"device": "cpu", "precision": "bf16", "threads": 2, "kernels": "all"},
    "steps": {
        "measured": 20,
        "watched_ms": 102.0,
        "plain_ms": 100.0,
        "fastest_ms": 95.0,
        "slowest_ms": 1234.5,
        "without_update": 0,
    },
    "batch": {"tokens": 8190.5, "sequences": 64.2, "forward_passes": 1.0, "filling_share": 0.008, "making_ms": 3.21},
    "parts": [
        {"part": "waiting", "forward_ms": None, "backward_ms": None, "ms": 2.0, "share": 0.02, "floor_ms": 0.0},
        {"part": "attention", "forward_ms": 20.0, "backward_ms": 60.0, "ms": 80.0, "share": 0.784, "floor_ms": 30.0},
        {"part": "optimizer", "forward_ms": None, "backward_ms": None, "ms": 20.0, "share": 0.196, "floor_ms": 10.0},
    ],
    "tokens_per_second": 81905.0,
    "peak_memory_bytes": 3 << 29,
    "floor": {
        "ms": 40.0,
        "fraction": 0.4,
        "operations": 52.5e9,
        "operations_per_second": 950e9,
        "optimizer_operations": 0.0,
        "bf16_operations_per_second": 950e9,
        "optimizer_bytes": 255.7e6,
        "bytes_per_second": 17e9,
    },
    "settings": {"objective": "mlm+nsp", "sources": ["أخبار.txt"]},
    "versions": {"torch": "2"},
}


def _changed(**tables: dict[str, Any]) -> dict[str, Any]:
    values = copy.deepcopy(VALUES)
    for name, changes in tables.items():
        values[name] |= changes
    return values


class _Page(HTMLParser):
    """The tags of a page, each closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in ("meta", "rect", "line"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_from_elsewhere() -> None:
    text = profile_report("a & b", VALUES)
    page = _Page(text)
    assert page.open == []
    assert {"src", "href"}.isdisjoint(name for name, _ in page.attributes)
    assert "<script" not in text
    assert "<b>" not in text
    assert "أخبار.txt" in text
    for told in ("a &amp; b", "Where its time goes", "100.0 ms", "0.40", "waiting for the batch", "52.5 GFLOP"):
        assert told in text


def test_the_last_row_of_the_table_is_the_step() -> None:
    rows = re.findall(r"<tr><th>([^<]*)</th>(.*?)</tr>", profile_report("profile", VALUES))
    cells = {name: re.findall(r"<td>(.*?)</td>", row) for name, row in rows}
    assert cells["together"] == ["20.0", "60.0", "102.0", "100.0%", "40.0"]
    assert cells["attention"] == ["20.0", "60.0", "80.0", "78.4%", "30.0"]
    assert cells["waiting for the batch"] == ["", "", "2.00", "2.0%", ""]


def test_bars_are_as_long_as_what_they_show() -> None:
    bars = [Bar("one", (1.0, 3.0), "four", mark=2.0), Bar("two", (0.0, 2.0), "two")]
    drawn = bar_chart(bars, [("forward", "--train"), ("backward", "--validation")], mark="floor", label="ms")
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert widths[1] == pytest.approx(3 * widths[0], abs=0.2)
    assert widths[3] == pytest.approx(2 * widths[0], abs=0.2)
    places = [float(place) for place in re.findall(r'<rect x="([\d.]+)"', drawn)]
    (mark,) = (float(place) for place in re.findall(r'<line x1="([\d.]+)"', drawn))
    assert mark == pytest.approx(places[0] + 2 * widths[0], abs=0.2)
    assert places[1] == pytest.approx(places[0] + widths[0], abs=0.2)


def test_a_chart_of_nothing_is_drawn() -> None:
    assert 'width="0.0"' in bar_chart([Bar("none", (0.0,), "0")], [("all", "--train")], mark="floor", label="ms")


@pytest.mark.parametrize(
    ("value", "told"), [(None, ""), (0.0, "0.00"), (3.456, "3.46"), (12.34, "12.3"), (1234.5, "1,234")]
)
def test_milliseconds_have_digits_that_tell_something(value: float | None, told: str) -> None:
    assert milliseconds(value) == told


def test_the_lead_says_what_ran_where() -> None:
    assert profile_lead(VALUES) == (
        "A step of pre-training, objective mlm+nsp: <b>, bert, 1,300,000 parameters; on cpu in bf16, 2 threads, with "
        "kernels of our own"
    )
    alone = _changed(machine={"threads": 1, "kernels": "none"}, subject={"job": "finetune", "task": "tag"})
    assert "fine-tuning, task tag" in profile_lead(alone)
    assert profile_lead(alone).endswith("1 thread, without kernels of our own")
    assert profile_lead(_changed(machine={"kernels": "without_products"})).endswith("without their products")


def test_facts_have_their_units() -> None:
    assert profile_facts(VALUES) == {
        "step as training takes it": "100.0 ms, the 20 of them from 95.0 to 1,234",
        "while its parts are watched": "102.0 ms (+2.0%)",
        "floor": "40.0 ms, 40% of the step",
        "tokens a second": "81,905",
        "tokens of a step": "8,190 in 64 sequences, 1 forward pass",
        "padding": "none; 0.8% of the rows make shapes round",
        "making a batch": "3.21 ms, in the background",
        "peak memory": "1.50 GiB, preparing included",
    }
    many = profile_facts(_changed(batch={"forward_passes": 2.5}, steps={"without_update": 3}))
    assert many["tokens of a step"].endswith("2.5 forward passes")
    assert many["steps that moved no weight"] == "3"
    untold = copy.deepcopy(VALUES) | {"peak_memory_bytes": None}
    assert "peak memory" not in profile_facts(untold)


def test_the_floor_says_what_it_is_made_of() -> None:
    assert floor_facts(VALUES) == {
        "matrix products of the model": "52.5 GFLOP",
        "rate of a large product in bf16": "950 GFLOP/s",
        "moved by the optimizer": "255.7 MB",
        "rate of copying": "17.0 GB/s",
    }
    muon = floor_facts(_changed(floor={"optimizer_operations": 2e9}, machine={"precision": "fp32"}))
    assert muon["matrix products of Muon"] == "2.0 GFLOP"
    assert {"rate of a large product in fp32", "rate of a large product in bf16"} <= muon.keys()


def test_parts_have_names_for_people() -> None:
    assert [part_title(part) for part in ("feed_forward", "head_and_loss", "norms")] == [
        "feed-forward",
        "head and loss",
        "norms",
    ]
