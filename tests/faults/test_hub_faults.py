"""Cut connections, altered bytes, closed doors, full disks: a model comes whole from the Hub or not at all."""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from bertsmith.exchange import pull as module
from bertsmith.exchange.pull import pull
from bertsmith.exchange.push import Destination, push
from bertsmith.folders.model_folder import write_model
from bertsmith.foundation.errors import InputError
from bertsmith.recipes.import_model import import_model_run
from hub_server import OWNER, UPLOAD_WARNING, HubServer, serving, stand_in_for_the_hub
from made_corpora import made_model, made_tokenizer

NAME = "somebody/bert"
WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A Hub that holds one model."""
    source = tmp_path / "source"
    source.mkdir()
    tokenizer = made_tokenizer()
    write_model(source, made_model(tokenizer.vocab_size, pairs=True), tokenizer)
    with serving() as server:
        stand_in_for_the_hub(server, monkeypatch, tmp_path / "home")
        # The library waits between its tries.
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        server.add(NAME, source)
        yield server


def refusal(tmp_path: Path) -> str:
    """Import the model, which must be refused and leave nothing half-written."""
    with pytest.raises(InputError) as caught:
        import_model_run(NAME, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name not in ("home", "source")) == []
    assert not [path for path in (tmp_path / "home").rglob("*") if path.name.endswith(".incomplete")]
    return str(caught.value)


def assert_comes_whole(hub: HubServer, tmp_path: Path) -> None:
    folder = import_model_run(NAME, tmp_path / "out").folder
    assert (folder / WEIGHTS).read_bytes() == hub.files(NAME)[WEIGHTS]


def test_a_cut_connection_is_taken_up_where_it_broke_off(hub: HubServer, tmp_path: Path) -> None:
    hub.cuts[WEIGHTS] = [5_000, 7_000]
    assert_comes_whole(hub, tmp_path)
    assert hub.cuts[WEIGHTS] == []
    assert sum(line.startswith("GET /stored/") for line in hub.requests) == 3


def test_a_connection_that_is_always_cut_is_told_and_leaves_nothing(hub: HubServer, tmp_path: Path) -> None:
    hub.cuts[WEIGHTS] = [5_000] + 50 * [0]
    message = refusal(tmp_path)
    assert "stay so until all has been transferred" in message
    assert "give the same command again" in message
    hub.cuts.clear()
    assert_comes_whole(hub, tmp_path)


@pytest.mark.parametrize("file", [WEIGHTS, "tokenizer.json", "config.json"])
def test_a_file_whose_sum_is_wrong_is_refused_and_taken_out_of_the_cache(
    hub: HubServer, tmp_path: Path, file: str
) -> None:
    hub.altered.add(file)
    message = refusal(tmp_path)
    assert "must have the sum that the Hub tells" in message
    assert file in message
    hub.altered.clear()
    assert_comes_whole(hub, tmp_path)


def test_a_file_that_rotted_in_the_cache_is_refused_once_and_then_fetched_anew(hub: HubServer, tmp_path: Path) -> None:
    blob = (pull(NAME).folder / WEIGHTS).resolve()
    blob.write_bytes(blob.read_bytes()[:-1] + b"\x7f")
    assert "must have the sum that the Hub tells" in refusal(tmp_path)
    assert_comes_whole(hub, tmp_path)


def test_a_file_of_the_wrong_size_is_refused(hub: HubServer, tmp_path: Path) -> None:
    hub.short.add(WEIGHTS)
    assert "A file must arrive whole" in refusal(tmp_path)
    hub.short.clear()
    assert_comes_whole(hub, tmp_path)


def test_a_name_that_is_not_there_is_told(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.models.clear()
    assert "HTTP 404 with the token given" in refusal(tmp_path)
    # To a stranger the Hub does not say whether a model is private or not there.
    monkeypatch.delenv("HF_TOKEN")
    message = refusal(tmp_path)
    assert "HTTP 401 without a token" in message
    assert "HF_TOKEN" in message


def test_a_private_model_opens_to_a_token_alone(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.models[NAME].private = True
    with monkeypatch.context() as patch:
        patch.delenv("HF_TOKEN")
        message = refusal(tmp_path)
        assert "HTTP 401 without a token" in message
        assert "Check the name" in message
        assert "hf auth login" in message
    assert_comes_whole(hub, tmp_path)


def test_a_gated_model_asks_to_accept_its_terms(hub: HubServer, tmp_path: Path) -> None:
    hub.models[NAME].gated = True
    message = refusal(tmp_path)
    assert "HTTP 403" in message
    assert "Accept the terms" in message


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_hub_that_cannot_answer_is_told_and_the_cache_serves_where_it_can(
    hub: HubServer, tmp_path: Path, status: int
) -> None:
    hub.statuses["/"] = status
    assert f"HTTP {status}" in refusal(tmp_path)
    hub.statuses.clear()
    pull(NAME)
    hub.statuses["/"] = status
    if status < 500:
        assert f"HTTP {status}" in refusal(tmp_path)
    else:
        assert f"HTTP {status}" in import_model_run(NAME, tmp_path / "out").notes[0]


def test_no_network_at_all_is_told(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    message = refusal(tmp_path)
    assert "The Hub must be reachable" in message
    assert "http://127.0.0.1:9" in message
    assert "HF_ENDPOINT" in message


def test_a_network_that_goes_down_between_question_and_files_is_told(hub: HubServer, tmp_path: Path) -> None:
    hub.statuses[f"/{NAME}/resolve/"] = 503
    assert "The Hub must be reachable" in refusal(tmp_path)


def test_a_branch_that_moves_while_it_is_fetched_is_refused(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = module.snapshot_download

    def fetch_after_a_commit(*arguments: object, **named: object) -> object:
        hub.models[NAME].commit(hub.files(NAME) | {"notes.txt": b"new"})
        return fetch(*arguments, **named)  # pyright: ignore[reportCallIssue, reportArgumentType]

    with monkeypatch.context() as patch:
        patch.setattr(module, "snapshot_download", fetch_after_a_commit)
        assert "must not change while it is fetched" in refusal(tmp_path)
    assert_comes_whole(hub, tmp_path)


def test_a_full_disk_under_the_cache_is_told(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("huggingface_hub.file_download.http_get", full)
        message = refusal(tmp_path)
    assert "The disk must have room" in message
    assert "--cache" in message
    assert_comes_whole(hub, tmp_path)


def test_a_cache_that_cannot_be_written_is_told(hub: HubServer, tmp_path: Path) -> None:
    (tmp_path / "source" / "cache").touch()
    with pytest.raises(InputError, match="The cache must be a folder that can be written"):
        import_model_run(NAME, tmp_path / "out", cache=tmp_path / "source" / "cache")
    assert not (tmp_path / "out").exists()


def test_a_file_outside_the_cache_is_not_told_as_the_cache(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*arguments: object, **named: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/certificates/of-this-system.pem")

    monkeypatch.setattr("huggingface_hub.file_download.http_get", closed)
    message = refusal(tmp_path)
    assert "cache" not in message
    assert "/certificates/of-this-system.pem" in message
    assert f"while fetching {NAME}" in message


@pytest.mark.filterwarnings(UPLOAD_WARNING)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_push_speaks_of_pushing_and_of_no_cache(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    ours = import_model_run(NAME, tmp_path / "out").folder

    def fails(*arguments: object, **named: object) -> None:
        raise OSError(number, os.strerror(number), str(ours / WEIGHTS))

    with monkeypatch.context() as patch:
        patch.setattr("huggingface_hub.hf_api.HfApi.create_commit", fails)
        with pytest.raises(InputError, match="while pushing mine") as caught:
            push(ours, Destination("mine"))
    assert "cache" not in str(caught.value)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError, match="The Hub must be reachable") as caught:
        push(ours, Destination("mine"))
    assert "--offline" not in str(caught.value)


@pytest.mark.filterwarnings(UPLOAD_WARNING)
@pytest.mark.parametrize("route", ["/upload/", f"/api/models/{OWNER}/mine/commit/", f"/api/models/{OWNER}/mine/preup"])
def test_a_push_that_breaks_off_leaves_no_commit_and_goes_again(hub: HubServer, tmp_path: Path, route: str) -> None:
    ours = import_model_run(NAME, tmp_path / "out").folder
    hub.statuses[route] = 503
    with pytest.raises(InputError, match=re.escape("HTTP 503")):
        push(ours, Destination("mine"))
    assert list(hub.files(f"{OWNER}/mine")) == [".gitattributes"]
    hub.statuses.clear()
    push(ours, Destination("mine"))
    assert hub.files(f"{OWNER}/mine")[WEIGHTS] == (ours / WEIGHTS).read_bytes()
