"""What the small JSON files of a tokenizer folder say: its class, its special tokens and the words added to it."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as LibraryTokenizer

from bertsmith.foundation.errors import InputError
from bertsmith.tokenization.pieces import space_mark
from bertsmith.tokenization.pipeline import ROLES

SETTINGS = "tokenizer_config.json"
_SPECIALS = "special_tokens_map.json"
_ADDED = "added_tokens.json"
_MODEL = "config.json"
_BRACKETS = {role: f"[{role.upper()}]" for role in ROLES}
_ANGLES = {"unk": "<unk>", "sep": "</s>", "pad": "<pad>", "cls": "<s>", "mask": "<mask>"}
_NAMES = {
    "bert": _BRACKETS,
    "roberta": _ANGLES,
    "albert": {**_BRACKETS, "unk": "<unk>", "pad": "<pad>"},
    "xlm-roberta": _ANGLES,
    "camembert": _ANGLES,
}
_CLASSES = {
    "BertTokenizer": "bert",
    "DistilBertTokenizer": "bert",
    "ElectraTokenizer": "bert",
    "MobileBertTokenizer": "bert",
    "RobertaTokenizer": "roberta",
    "LongformerTokenizer": "roberta",
    "AlbertTokenizer": "albert",
    "XLMRobertaTokenizer": "xlm-roberta",
    "CamembertTokenizer": "camembert",
}
_GENERIC = ("PreTrainedTokenizer", "TokenizersBackend")
# Models whose vocab.txt or vocab.json is not read as BERT's or RoBERTa's.
_OTHER_MODELS = (
    "bertweet",
    "flaubert",
    "funnel",
    "mpnet",
    "openai-gpt",
    "phobert",
    "roformer",
    "splinter",
    "tapas",
    "xlm",
)
_ELSEWHERE = "Open the folder in the program that it was made for, and save its tokenizer.json."
_DAMAGED = "The file is damaged: get it anew."


@dataclass(frozen=True)
class FolderSettings:
    """The settings beside a tokenizer's files.

    Attributes:
        settings: tokenizer_config.json.
        named: special tokens by ``{role}_token``, and lists of further ones; a name, an object with flags, or None.
        added: tokens that were added to the vocabulary, by id; an object with a name and flags each.
        model_type: the family of the model in the folder, where it says.
        folder: where the files lie.
        family: whose special tokens and layout are taken, or empty where the tokenizer's own file tells.
    """

    settings: dict[str, Any]
    named: dict[str, Any]
    added: dict[int, dict[str, Any]]
    model_type: str | None
    folder: Path
    family: str = ""

    @classmethod
    def read(cls, folder: Path) -> "FolderSettings":
        """Read what there is.

        Raises:
            InputError: if a file is damaged.
        """
        settings, specials = read_object(folder / SETTINGS), read_object(folder / _SPECIALS)
        model_type = read_object(folder / _MODEL).get("model_type")
        declared = settings.get("added_tokens_decoder")
        # The later kind of folder keeps all in one file; in the earlier one the special file has the last word.
        named = {**specials, **settings} if isinstance(declared, dict) else {**settings, **specials}
        special_names = {_content(value) for key, value in named.items() if key.endswith("_token")}
        special_names |= {_content(token) for token in _listed(named)}
        try:
            if isinstance(declared, dict):
                added = {int(number): {**token, "content": str(token["content"])} for number, token in declared.items()}
            else:
                added = {
                    int(number): {"content": word, "normalized": not special, "special": special}
                    for word, number in read_object(folder / _ADDED).items()
                    for special in (word in special_names,)
                }
        except (TypeError, ValueError, KeyError) as error:
            rule = f"Added tokens in {SETTINGS} or {_ADDED} must have ids and names"
            raise InputError(rule, folder, _DAMAGED) from error
        return cls(settings, named, added, model_type if isinstance(model_type, str) else None, folder)

    def of_family(self, file: str, families: Collection[str], default: str | None = None) -> "FolderSettings":
        """The same for a folder whose vocabulary lies in `file`, which tokenizers of these families have.

        Raises:
            InputError: if the folder names a class or a model that reads the file in another way.
        """
        rule = f"{file} is read as the tokenizer of {' or '.join(families)}"
        name = self.settings.get("tokenizer_class")
        if isinstance(name, str) and not name.startswith(_GENERIC):
            family = _CLASSES.get(name.removesuffix("Fast"))
            if family not in families:
                raise InputError(rule, f"tokenizer_class={name}", _ELSEWHERE)
        elif self.model_type in families:
            family = self.model_type
        elif self.model_type is not None and (default is not None or self.model_type in _OTHER_MODELS):
            raise InputError(rule, f"model_type={self.model_type}", _ELSEWHERE)
        else:
            family = default or next(iter(families))
        return replace(self, family=family or "")

    def flag(self, name: str, *, default: bool) -> bool:
        """A setting that is true or false.

        Raises:
            InputError: if it is anything else.
        """
        value = self.settings.get(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        raise InputError(f"{name} in {SETTINGS} must be true or false", repr(value), "Correct it, or leave it out.")

    def name(self, role: str) -> str:
        """The special token of a role, as the folder or else the family calls it."""
        return _content(self.named.get(f"{role}_token")) or _NAMES[self.family][role]

    def roles(self, vocabulary: Collection[str]) -> dict[str, str]:
        """The special token of each role that the vocabulary holds."""
        found: dict[str, str] = {}
        for role in ROLES:
            for token in self._candidates(role):
                if token in vocabulary:
                    found[role] = token
                    break
        return found

    def needed(self, path: Path, vocabulary: Collection[str], roles: Iterable[str]) -> dict[str, str]:
        """`roles`, of which these must be there.

        Raises:
            InputError: if one is not.
        """
        found = self.roles(vocabulary)
        for role in roles:
            if role not in found:
                names = " or ".join(self._candidates(role)) or f"the {role} token"
                raise InputError(
                    f"{path.name} must hold {names}",
                    f"{len(vocabulary)} pieces without it",
                    f"Name the folder's own in {SETTINGS}, as {role}_token.",
                )
        return found

    def _candidates(self, role: str) -> list[str]:
        key = f"{role}_token"
        # A folder that says null has no such token; one that says nothing may have a usual one.
        if key in self.named:
            return [name] if (name := _content(self.named[key])) is not None else []
        usual = [_BRACKETS[role], _ANGLES[role]]
        if self.family in ("", "bert", "roberta"):
            return sorted(usual, key=lambda name: name != _NAMES.get(self.family, _BRACKETS)[role])
        return [_NAMES[self.family][role]]

    def declare(self, library: LibraryTokenizer, further: Iterable[AddedToken] = ()) -> None:
        """Add the folder's special and added tokens to a tokenizer out of a bare vocabulary.

        Raises:
            InputError: if an added token would get another id than the folder says.
        """
        tokens = {token.content: token for token in further}
        declared = {token["content"]: token for _, token in sorted(self.added.items())}
        tokens.update({name: _added(token) for name, token in declared.items()})
        known = {*library.get_vocab(with_added_tokens=True), *tokens}
        for role, name in self.roles(known).items():
            given = declared.get(name, self.named.get(f"{role}_token"))
            if isinstance(given, dict):
                tokens[name] = _added({**given, "special": True})
            else:
                # As published: the space before a mask belongs to the word that it hides.
                eats_space = role == "mask" and space_mark(library) is not None
                tokens[name] = AddedToken(name, special=True, normalized=False, lstrip=eats_space)
        for token in self._further():
            tokens.setdefault(token.content, token)
        library.add_tokens(list(tokens.values()))
        for number, token in self.added.items():
            if library.token_to_id(token["content"]) != number:
                raise InputError(
                    "Added tokens must have the ids after the vocabulary's, without a gap",
                    f"{token['content']} with the id {number} in {self.folder}",
                    _ELSEWHERE,
                )

    def _further(self) -> list[AddedToken]:
        found: list[AddedToken] = []
        for token in _listed(self.named):
            if isinstance(token, dict) and _content(token) is not None:
                found.append(_added({**token, "special": True}))
            elif isinstance(token, str):
                found.append(AddedToken(token, special=True, normalized=False))
        return found


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file, or an empty one where there is no file.

    Raises:
        InputError: if the file holds anything else.
    """
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path.name} must hold JSON", f"{path} ({error})", _DAMAGED) from error
    if not isinstance(value, dict):
        raise InputError(f"{path.name} must hold a JSON object", path, _DAMAGED)
    return value


def _listed(named: dict[str, Any]) -> list[Any]:
    lists = [named.get(key) for key in ("additional_special_tokens", "extra_special_tokens")]
    return [token for given in lists if isinstance(given, list) for token in given]


def _content(value: Any) -> str | None:
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else None


def _added(token: dict[str, Any]) -> AddedToken:
    flags = {name: bool(token[name]) for name in ("single_word", "lstrip", "rstrip", "normalized") if name in token}
    return AddedToken(token["content"], special=bool(token.get("special")), **flags)
