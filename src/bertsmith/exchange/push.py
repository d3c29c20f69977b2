"""Giving a model folder to the Hub, in one commit and with its card."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, get_token

from bertsmith.exchange.card import complete_card
from bertsmith.exchange.hub_errors import GIVE_TOKEN, Pushing, hub_errors
from bertsmith.exchange.pull import BESIDE_WEIGHTS
from bertsmith.folders.config_json import written_config
from bertsmith.folders.model_folder import CARD, CONFIG, read_config, read_model
from bertsmith.folders.offer import Offer, offer_of
from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import MANIFEST, folder_faults, read_manifest

_MAIN = "main"
_MOST_SHOWN = 6


@dataclass(frozen=True)
class Pushed:
    """A model that is now on the Hub.

    Attributes:
        name: `owner/name`.
        url: its page.
        commit: the commit that holds it.
        license: what its card says.
    """

    name: str
    url: str
    commit: str
    license: str


@dataclass(frozen=True)
class Destination:
    """Where a model goes.

    Attributes:
        name: `owner/name`, or `name` for the token's owner.
        branch: the main branch, or another one, which is made where it is missing.
        private: whether nobody else may see it.
    """

    name: str
    branch: str = _MAIN
    private: bool = False


def push(folder: Path, to: Destination, *, license_id: str | None = None, language: str | None = None) -> Pushed:
    """Upload what a model folder's manifest lists, and nothing else that may lie in the folder.

    What an earlier model there had beside its weights, and this one has not, goes with the same commit: read together
    with the new files it would change them. Where the card lacks a licence, `unknown` is written into it; the folder
    itself stays as it is.

    Raises:
        InputError: if the folder is no finished model folder or not as it was written, there is no token, or the Hub
            refuses.
    """
    _refuse_unfit(folder)
    if constants.HF_HUB_OFFLINE:
        raise InputError("A push needs a network", "HF_HUB_OFFLINE=1", "Unset HF_HUB_OFFLINE.")
    if get_token() is None:
        raise InputError("A push needs a token that may write", "none", GIVE_TOKEN)
    uploads = _uploads(folder, license_id, language)
    api = HfApi()
    with hub_errors(to.name, Pushing()):
        # An absent wish leaves the choice to the owner's own default.
        made = api.create_repo(to.name, private=to.private or None, exist_ok=True)
        name = made.repo_id
        if to.private and not api.model_info(name).private:
            raise InputError(
                "--private must hold for a model that is on the Hub already",
                f"{name}, which is public",
                "Make it private on its page, or push under another name.",
            )
        if to.branch != _MAIN:
            api.create_branch(name, branch=to.branch, exist_ok=True)
        there = {sibling.rfilename for sibling in api.model_info(name, revision=to.branch).siblings or ()}
        commit = api.create_commit(
            name,
            [
                *(CommitOperationAdd(path, content) for path, content in uploads.files.items()),
                *(CommitOperationDelete(path) for path in BESIDE_WEIGHTS if path in there - uploads.files.keys()),
            ],
            commit_message="Upload model with bertsmith",
            revision=to.branch,
        )
    return Pushed(name, str(made), commit.oid, uploads.license)


@dataclass(frozen=True)
class _Uploads:
    files: dict[str, str | bytes]
    """By path in the model: a file's path here, or content."""
    license: str


def _refuse_unfit(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError("push takes a model folder", f"no folder {folder}", "Check the path.")
    if not (folder / MANIFEST).is_file():
        raise InputError(
            f"push takes a finished model folder, which holds {MANIFEST}",
            f"{folder} without it",
            f"Is it from elsewhere? Make it one: bertsmith import {folder} --out DIR",
        )
    if (kind := read_manifest(folder).get("kind")) != "model":
        raise InputError("push takes a model folder", f"{folder}, a {kind}", "Give the folder of a finished model.")
    if faults := folder_faults(folder):
        raise InputError(
            "A folder must be as it was written before it is pushed",
            f"{folder}, with {'; '.join(faults[:_MOST_SHOWN])}",
            "Make or fetch it anew.",
        )


def _uploads(folder: Path, license_id: str | None, language: str | None) -> _Uploads:
    manifest = read_manifest(folder)
    files: dict[str, str | bytes] = {path: str(folder / path) for path in manifest["files"]}
    files[MANIFEST] = str(folder / MANIFEST)
    before = (folder / CARD).read_text(encoding="utf-8") if CARD in files else ""
    card = complete_card(before, offer=_offer(folder), license_id=license_id, language=language)
    if card.text != before:
        content = card.text.encode()
        files[CARD] = content
        manifest["files"][CARD] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        files[MANIFEST] = (json.dumps(manifest, ensure_ascii=False, indent=2) + "\n").encode()
    return _Uploads(files, card.license)


def _offer(folder: Path) -> Offer:
    # Weights may be many gigabytes, and only a config from elsewhere leaves it to them to tell the heads.
    told = written_config(read_config(folder), str(folder / CONFIG))
    return offer_of(read_model(folder).model.config if told is None else told)
