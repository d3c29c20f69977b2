"""A Hub on this machine: an HTTP server on loopback that speaks the routes which the Hub's library calls.

Large files are served as the Hub serves them: `resolve` answers with a redirect that names sum and size, and the bytes
come from another path. It can be told to cut connections, to alter bytes and to be closed.
"""

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants

UPLOAD_WARNING = "ignore:Use 'content=<...>':DeprecationWarning"
"""What the Hub's library 2.4 calls forth from its own transport with every upload."""
TOKEN = "hf_a-token-that-may-write"
OWNER = "somebody"
_LARGE = (".safetensors", ".bin")
_SECONDS = 20.0


@dataclass
class Repository:
    """A model with its commits; `branches` also holds tags."""

    private: bool = False
    gated: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Add a commit with just these files to a branch; returns its name."""
        name = hashlib.sha1(f"{branch} {len(self.commits)} {sorted(files)}".encode()).hexdigest()
        self.commits[name] = dict(files)
        self.branches[branch] = name
        return name

    def found(self, revision: str) -> str | None:
        """The commit that a revision means."""
        return revision if revision in self.commits else self.branches.get(revision)


@dataclass
class HubServer:
    """What the server holds and how it misbehaves. Names in `cuts`, `altered` and `short` are paths in a model."""

    endpoint: str = ""
    models: dict[str, Repository] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    cuts: dict[str, list[int]] = field(default_factory=dict)
    """How many bytes to send before each of the next answers is cut off."""
    altered: set[str] = field(default_factory=set)
    """Files in which one bit is flipped on the way."""
    short: set[str] = field(default_factory=set)
    """Files that are told to be, and are, one byte shorter than they should be."""
    statuses: dict[str, int] = field(default_factory=dict)
    """Answers to all requests whose path begins so."""

    def add(self, name: str, folder: Path, **facts: Any) -> Repository:
        """Take a folder's files as a model's first commit."""
        repository = self.models[name] = Repository(**facts)
        repository.commit({path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})
        return repository

    def files(self, name: str, revision: str = "main") -> dict[str, bytes]:
        """The files of a model."""
        repository = self.models[name]
        return repository.commits[repository.branches[revision]]


@contextlib.contextmanager
def serving() -> Iterator[HubServer]:
    """Run a server for as long as the block runs."""
    hub = HubServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(_SECONDS)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _is_large(path: str) -> bool:
    return path.endswith(_LARGE)


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"
    timeout = _SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_HEAD(self) -> None:
        self._answer("HEAD")

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def _answer(self, method: str) -> None:
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.hub.requests.append(f"{method} {path}")
        if refused := [status for start, status in self.hub.statuses.items() if path.startswith(start)]:
            return self._send(refused[0])
        routes = {
            r"/api/models/(?P<name>.+)/tree/(?P<revision>[^/]+)": self._tree,
            r"/api/models/(?P<name>.+)/revision/(?P<revision>[^/]+)": self._info,
            r"/api/models/(?P<name>.+)/preupload/(?P<revision>[^/]+)": self._preupload,
            r"/api/models/(?P<name>.+)/commit/(?P<revision>[^/]+)": self._commit,
            r"/api/models/(?P<name>.+)/branch/(?P<revision>[^/]+)": self._branch,
            r"/api/models/(?P<name>[^/]+(/[^/]+)?)": self._info,
            r"/api/repos/create": self._create,
            r"/api/validate-yaml": self._validate,
            r"/(?P<name>.+)\.git/info/lfs/objects/batch": self._batch,
            r"/(?P<name>.+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)": self._resolve,
            r"/stored/(?P<sum>\w+)/(?P<file>.+)": self._stored,
            r"/upload/(?P<sum>\w+)": self._upload,
        }
        for pattern, route in routes.items():
            if (match := re.fullmatch(pattern, path)) is not None:
                if (found := match.groupdict().get("name")) is not None and not self._may_see(found, method):
                    return None
                return route(body=body, **match.groupdict())
        return self._send(404)

    def _may_see(self, name: str, method: str) -> bool:
        repository = self.hub.models.get(name)
        knows = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if repository is None:
            self._send(404 if knows else 401, headers={"X-Error-Code": "RepoNotFound"} if knows else {})
        elif (repository.private or method == "POST") and not knows:
            self._send(401)
        elif repository.gated:
            self._send(403, headers={"X-Error-Code": "GatedRepo"})
        else:
            return True
        return False

    def _send(
        self, status: int, content: bytes = b"", headers: dict[str, str] | None = None, *, cut: int | None = None
    ) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:cut])
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True

    def _send_json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _info(self, name: str, body: bytes, revision: str = "main") -> None:
        repository = self.hub.models[name]
        if (commit := repository.found(revision)) is None:
            return self._send(404, headers={"X-Error-Code": "RevisionNotFound"})
        siblings = [
            {"rfilename": path, "size": len(content), "blobId": _blob_id(content)}
            | ({"lfs": _lfs(content, "sha256")} if _is_large(path) else {})
            for path, content in repository.commits[commit].items()
        ]
        return self._send_json({"id": name, "sha": commit, "private": repository.private, "siblings": siblings})

    def _tree(self, name: str, revision: str, body: bytes) -> None:
        commit = self.hub.models[name].commits[revision]
        self._send_json(
            [
                {"type": "file", "path": path, "size": len(content), "oid": _blob_id(content)}
                | ({"lfs": _lfs(content, "oid")} if _is_large(path) else {})
                for path, content in commit.items()
            ]
        )

    def _resolve(self, name: str, revision: str, file: str, body: bytes) -> None:
        repository = self.hub.models[name]
        if (commit := repository.found(revision)) is None or file not in repository.commits[commit]:
            return self._send(404, headers={"X-Error-Code": "EntryNotFound"})
        content = repository.commits[commit][file]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{_blob_id(content)}"', "Accept-Ranges": "bytes"}
        if not _is_large(file):
            return self._send_file(file, content, headers)
        self.hub.blobs[sha256(content)] = content
        size = len(content) - (file in self.hub.short)
        return self._send(
            302,
            headers=headers
            | {
                "X-Linked-ETag": f'"{sha256(content)}"',
                "X-Linked-Size": str(size),
                # Another host's name, as it is there: the library follows redirects within the Hub by itself.
                "Location": f"{self.hub.endpoint.replace('127.0.0.1', 'localhost')}/stored/{sha256(content)}/{file}",
            },
        )

    def _stored(self, sum: str, file: str, body: bytes) -> None:
        # There an address is its own permission, and a token that comes along has been given away.
        if "Authorization" in self.headers:
            return self._send(400)
        return self._send_file(file, self.hub.blobs[sum], {})

    def _send_file(self, file: str, content: bytes, headers: dict[str, str]) -> None:
        if file in self.hub.altered:
            content = content[:-1] + bytes([content[-1] ^ 1])
        status, start = 200, 0
        if (wanted := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))) is not None:
            status, start = 206, int(wanted[1])
            headers = headers | {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        cuts = self.hub.cuts.get(file)
        cut = cuts.pop(0) if cuts and self.command == "GET" else None
        self._send(status, content[start:], headers, cut=cut)

    def _create(self, body: bytes) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._send(401)
        asked = json.loads(body)
        name = f"{asked.get('organization') or OWNER}/{asked['name']}"
        address = {"url": f"{self.hub.endpoint}/{name}", "name": name}
        if name in self.hub.models:
            return self._send(409, json.dumps(address).encode(), {"Content-Type": "application/json"})
        private = asked.get("visibility") == "private" or asked.get("private") is True
        self.hub.models[name] = Repository(private=private)
        self.hub.models[name].commit({".gitattributes": b"*.safetensors filter=lfs\n"})
        return self._send_json(address)

    def _validate(self, body: bytes) -> None:
        self._send_json({"errors": [], "warnings": []})

    def _preupload(self, name: str, revision: str, body: bytes) -> None:
        if self.hub.models[name].found(revision) is None:
            return self._send(404, headers={"X-Error-Code": "RevisionNotFound"})
        files = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if _is_large(file["path"]) else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for file in json.loads(body)["files"]
        ]
        return self._send_json({"files": files})

    def _batch(self, name: str, body: bytes) -> None:
        objects = [
            wanted | {"actions": {"upload": {"href": f"{self.hub.endpoint}/upload/{wanted['oid']}"}}}
            for wanted in json.loads(body)["objects"]
        ]
        self._send_json({"transfer": "basic", "objects": objects})

    def _upload(self, sum: str, body: bytes) -> None:
        if sha256(body) != sum:
            return self._send(400)
        self.hub.blobs[sum] = body
        return self._send(200)

    def _branch(self, name: str, revision: str, body: bytes) -> None:
        repository = self.hub.models[name]
        if revision in repository.branches:
            return self._send(409)
        repository.branches[revision] = repository.branches["main"]
        return self._send(201)

    def _commit(self, name: str, revision: str, body: bytes) -> None:
        repository = self.hub.models[name]
        files = dict(self.hub.files(name, revision))
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.hub.blobs[value["oid"]]
            elif entry["key"] == "deletedFile":
                del files[value["path"]]
        commit = repository.commit(files, revision)
        self._send_json(
            {"success": True, "commitOid": commit, "commitUrl": f"{self.hub.endpoint}/{name}/commit/{commit}"}
        )


def _lfs(content: bytes, key: str) -> dict[str, Any]:
    return {key: sha256(content), "size": len(content), "pointerSize": 134}


def stand_in_for_the_hub(hub: HubServer, patch: pytest.MonkeyPatch, home: Path, *, token: str | None = TOKEN) -> None:
    """Let the Hub's library in this process take `hub` for the Hub, and `home` for the place of its cache and token.

    The library reads its environment once, when it is loaded; so its constants are set, and the environment besides.
    """
    patch.setattr(constants, "ENDPOINT", hub.endpoint)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}")
    patch.setattr(constants, "HF_URL_HOSTS", frozenset({"127.0.0.1"}))
    patch.setattr(constants, "HF_HUB_OFFLINE", False)
    patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    patch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    patch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
    patch.setattr(constants, "AGENT_HARNESSES_PATH", str(home / "agents.json"), raising=False)
    patch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    if token is None:
        patch.delenv("HF_TOKEN", raising=False)
    else:
        patch.setenv("HF_TOKEN", token)
