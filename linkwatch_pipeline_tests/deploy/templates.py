"""Reads the CloudFormation templates: short forms such as !Ref become {"Ref": ...}, as CloudFormation sees them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"

Node = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """Knows the short forms."""


def _short_form(loader: _Loader, name: str, node: yaml.Node) -> Node:
    key = name if name in ("Ref", "Condition") else f"Fn::{name}"
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        if name == "GetAtt":
            value = str(value).split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    return {key: value}


_Loader.add_multi_constructor("!", _short_form)


@cache
def read_template(name: str) -> Node:
    """`foundation` or `application`."""
    template: Node = yaml.load((DEPLOY / f"{name}.yaml").read_text(encoding="utf-8"), _Loader)
    return template


def resources(template: Node, kind: str) -> dict[str, Node]:
    """The resources of a type, with their properties."""
    return {
        name: resource["Properties"] for name, resource in template["Resources"].items() if resource["Type"] == kind
    }


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(role: Node) -> Iterator[Node]:
    """Every statement of a role's own policies, those that a condition may leave out included."""
    for policy in role["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            yield statement["Fn::If"][1] if "Fn::If" in statement else statement


def walk(node: Any) -> Iterator[Any]:
    """Every value inside, the node itself first."""
    yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(child)
