"""What the simulated api.github.com answers: a repository with a few files, one commit, one issue and one pull request.

Names, numbers and paths are those that are asked for, so a client finds what it looks for. What is written is answered
as if it had been made, and not kept.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
from typing import Any, Final

from docmind_lab.services.endpoint_request import EndpointRequest, EndpointResponse
from docmind_lab.services.search_pages import page

_AT: Final = "2026-01-01T12:00:00Z"
_FILES: Final = ("README.md", "src/main.py", "tests/test_main.py")
_PATCH: Final = '@@ -1,2 +1,3 @@\n def main():\n-    print("ebb")\n+    tide = "flood"\n+    print(tide)\n'


def github(request: EndpointRequest) -> Any:
    """Return what api.github.com does for repositories, users, contents, commits, issues and pulls; else 404."""
    parts = request.path.strip("/").split("/")
    if parts[0] == "search" and len(parts) == 2:
        return _found(parts[1], request.query.get("q", ""))
    if parts[0] in ("users", "user", "orgs"):
        owner = parts[1] if len(parts) > 1 else "ada"
        return [_repository(owner, "harbour")] if parts[-1] in ("repos", "events") else _user(owner)
    if parts[0] == "repos" and len(parts) >= 3:
        found = _of_repository(parts[1], parts[2], "/".join(parts[3:]), request)
        if found is not None:
            return EndpointResponse(found, status=201) if request.method == "POST" else found
    return EndpointResponse({"message": "Not Found", "status": "404"}, status=404)


def github_file(request: EndpointRequest) -> str:
    """Return a file's text as raw.githubusercontent.com does."""
    return _text(request.path.strip("/").split("/", 3)[-1])


def github_page(request: EndpointRequest) -> Any:
    """Return a page of github.com, or the text of a pull request's or commit's change."""
    return _diff() if request.path.endswith((".diff", ".patch")) else page(request)


def _of_repository(owner: str, name: str, place: str, request: EndpointRequest) -> Any:
    what, _, rest = place.partition("/")
    number, _, of_it = rest.partition("/")
    match what:
        case "":
            return _repository(owner, name)
        case "contents":
            return [_file(each) for each in _FILES] if rest in ("", ".", "/") else _file(rest)
        case "readme":
            return _file("README.md")
        case "languages":
            return {"Python": 1_200}
        case "topics" | "tags" | "releases" | "labels":
            return {"names": ["tides"]} if what == "topics" else []
        case "contributors" | "collaborators":
            return [_user("ada")]
        case "branches":
            branch = {"name": rest or "main", "commit": {"sha": _sha("commit")}, "protected": False}
            return branch if rest else [branch]
        case "commits":
            return _commit(number) if number else [_commit("")]
        case "git" | "compare":
            return _git(rest) if what == "git" else {"files": [_changed()], "commits": [_commit("")], "status": "ahead"}
        case "pulls" if of_it in ("", "files", "comments", "reviews", "commits"):
            return _pull(owner, name, number, of_it, request)
        case "issues" if of_it in ("", "comments", "labels"):
            return _issue_part(owner, name, number, of_it, request)
    return None


def _issue_part(owner: str, name: str, number: str, of_it: str, request: EndpointRequest) -> Any:
    if of_it == "labels":
        return []
    if of_it == "comments":
        return _comment(request) if request.method == "POST" else [_comment(request)]
    issue = _issue(owner, name, number or "1", request)
    return issue if number or request.method == "POST" else [issue]


def _pull(owner: str, name: str, number: str, of_it: str, request: EndpointRequest) -> Any:
    if of_it == "files":
        return [_changed()]
    if of_it == "commits":
        return [_commit("")]
    if of_it:
        return {**_comment(request), "state": "COMMENTED"} if request.method == "POST" else []
    wanted = request.headers.get("accept", "")
    if number and ("diff" in wanted or "patch" in wanted):
        return _diff()
    issue = _issue(owner, name, number or "1", request)
    address = f"https://github.com/{owner}/{name}/pull/{issue['number']}"
    pull = {
        **issue,
        "html_url": address,
        "diff_url": f"{address}.diff",
        "head": {"ref": "tides", "sha": _sha("head"), "repo": _repository(owner, name)},
        "base": {"ref": "main", "sha": _sha("base"), "repo": _repository(owner, name)},
        "merged": False,
        "mergeable": True,
        "draft": False,
        "changed_files": 1,
        "additions": 2,
        "deletions": 1,
        "commits": 1,
    }
    return pull if number or request.method == "POST" else [pull]


def _issue(owner: str, name: str, number: str, request: EndpointRequest) -> dict[str, Any]:
    given = request.json if isinstance(request.json, dict) else {}
    return {
        "id": 1,
        "number": int(number) if number.isdigit() else 1,
        "title": given.get("title") or "The tide table is an hour late",
        "body": given.get("body") or "High water came an hour before the table said so.",
        "state": "open",
        "user": _user("ada"),
        "labels": [{"name": "bug"}],
        "assignees": [],
        "comments": 1,
        "created_at": _AT,
        "updated_at": _AT,
        "closed_at": None,
        "url": f"https://api.github.com/repos/{owner}/{name}/issues/{number}",
        "html_url": f"https://github.com/{owner}/{name}/issues/{number}",
    }


def _repository(owner: str, name: str) -> dict[str, Any]:
    return {
        "id": 1,
        "name": name,
        "full_name": f"{owner}/{name}",
        "owner": _user(owner),
        "private": False,
        "fork": False,
        "description": f"What {name} does",
        "html_url": f"https://github.com/{owner}/{name}",
        "clone_url": f"https://github.com/{owner}/{name}.git",
        "url": f"https://api.github.com/repos/{owner}/{name}",
        "default_branch": "main",
        "language": "Python",
        "stargazers_count": 12,
        "forks_count": 3,
        "open_issues_count": 1,
        "size": 10,
        "topics": ["tides"],
        "license": {"key": "mit", "name": "MIT License", "spdx_id": "MIT"},
        "created_at": _AT,
        "updated_at": _AT,
        "pushed_at": _AT,
    }


def _user(login: str) -> dict[str, Any]:
    return {
        "login": login,
        "id": 1,
        "type": "User",
        "name": login,
        "html_url": f"https://github.com/{login}",
        "public_repos": 1,
        "followers": 2,
    }


def _file(path: str) -> dict[str, Any]:
    text = _text(path).encode()
    return {
        "type": "file",
        "name": posixpath.basename(path),
        "path": path,
        "sha": _sha(path),
        "size": len(text),
        "encoding": "base64",
        "content": base64.b64encode(text).decode(),
        "download_url": f"https://raw.githubusercontent.com/example/harbour/main/{path}",
    }


def _text(path: str) -> str:
    name = posixpath.basename(path)
    return f'def main():\n    print("{name}")\n' if name.endswith(".py") else f"# {name}\n\nTides turn twice a day.\n"


def _git(what: str) -> dict[str, Any]:
    tree = [{"path": path, "mode": "100644", "type": "blob", "sha": _sha(path), "size": 40} for path in _FILES]
    made = {"sha": _sha(what), "tree": tree if what.startswith("trees") else {"sha": _sha("tree")}, "truncated": False}
    return {**made, "ref": "refs/heads/main", "object": {"type": "commit", "sha": _sha("commit")}}


def _commit(sha: str) -> dict[str, Any]:
    who = {"name": "ada", "email": "ada@example.com", "date": _AT}
    return {
        "sha": sha if re.fullmatch(r"[0-9a-f]{7,40}", sha) else _sha("commit"),
        "commit": {"message": "Correct the tide table", "author": who, "committer": who, "tree": {"sha": _sha("tree")}},
        "author": _user("ada"),
        "committer": _user("ada"),
        "parents": [],
        "files": [_changed()],
        "html_url": "https://github.com/example/harbour/commit/1",
    }


def _changed() -> dict[str, Any]:
    return {
        "sha": _sha("src/main.py"),
        "filename": "src/main.py",
        "status": "modified",
        "additions": 2,
        "deletions": 1,
        "changes": 3,
        "patch": _PATCH,
        "raw_url": "https://raw.githubusercontent.com/example/harbour/main/src/main.py",
    }


def _diff() -> str:
    return f"diff --git a/src/main.py b/src/main.py\n--- a/src/main.py\n+++ b/src/main.py\n{_PATCH}"


def _comment(request: EndpointRequest) -> dict[str, Any]:
    given = request.json if isinstance(request.json, dict) else {}
    return {"id": 1, "body": given.get("body") or "It is.", "user": _user("ada"), "created_at": _AT, "html_url": ""}


def _found(kind: str, topic: str) -> dict[str, Any]:
    words = re.sub(r"\w+:\S+", "", topic).split()
    name = "-".join(words[:3]) or "harbour"
    found = {"repositories": _repository("example", name), "users": _user("ada"), "commits": _commit("")}
    item = found.get(kind) or {**_file("src/main.py"), "title": topic, "repository": _repository("example", name)}
    return {"total_count": 1, "incomplete_results": False, "items": [item]}


def _sha(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:40]
