"""What stands in front of a Markdown text for the program that publishes it: YAML, TOML or JSON, never links."""

from __future__ import annotations

import json
import re

_YAML_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# TOML's, JSON's of Gatsby, and the kind named behind the line as Eleventy takes it: `---json`.
_FENCED_FRONT_MATTER = re.compile(
    r"(?:(\+\+\+|;;;)|(---)(?:json|js|javascript|toml|ya?ml))[ \t]*\n(?:.*?\n)??(?:\1|\2)[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
_JSON_FRONT_MATTER = re.compile(r"\{\s*\"")  # Hugo's
_YAML_KEY = re.compile(r"[A-Za-z0-9_\"'][^:\n]*:(?=\s|$)")


def without_front_matter(text: str) -> str:
    """The text with blank lines for its front matter, if what stands there can be that."""
    end = _end_of_front_matter(text)
    return "\n" * text.count("\n", 0, end) + text[end:]


def _end_of_front_matter(text: str) -> int:
    yaml = _YAML_FRONT_MATTER.match(text)
    if yaml is not None:
        meant = [line for line in (yaml[1] or "").splitlines() if line.strip() and not line.lstrip().startswith("#")]
        return yaml.end() if not meant or _YAML_KEY.match(meant[0]) is not None else 0
    if _JSON_FRONT_MATTER.match(text) is not None:
        return _end_of_json(text)
    fenced = _FENCED_FRONT_MATTER.match(text)
    return fenced.end() if fenced is not None else 0


def _end_of_json(text: str) -> int:
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return 0
    rest = re.compile(r"[ \t]*(?:\n|\Z)").match(text, end)
    return rest.end() if rest is not None else 0
