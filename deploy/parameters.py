"""The parameters of the templates, and what can be known to be wrong with them before anything is made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from refusals import Refused
from schedules import schedule_problem

from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.settings import load_settings

HERE = Path(__file__).resolve().parent
# The deployment sets these itself.
NOT_SET_BY_HAND = {"CodeBucket", "CodeKey"}
# A bucket, functions and logs are named after the stack: NAME-code-ACCOUNT-REGION is the longest of these names.
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_NAMES_OF_AMAZON = ("sthree-", "amzn-s3-demo-")
_FOUNDATION = "-foundation"
_LONGEST_BUCKET = 63
# What the stacks make themselves and no function would refuse; it has no name before.
_MADE_THEN = {"TableName": "made-with-the-stacks", "ConfigurationSet": "made-with-the-stacks"}

Parameters = Mapping[str, Any]


class _Loader(yaml.SafeLoader):
    """Knows one short form of CloudFormation, !Ref, and takes the others for nothing."""


_Loader.add_multi_constructor("!", lambda loader, name, node: {"Ref": node.value} if name == "Ref" else None)


def _template(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.load((HERE / f"{name}.yaml").read_text(encoding="utf-8"), _Loader)
    return read


def parameters_of(template: str) -> Parameters:
    """A template's parameters, by name."""
    parameters: Parameters = _template(template)["Parameters"]
    return parameters


def check_name(name: str, bucket: str) -> None:
    """Raise Refused for a name that CloudFormation or S3 would refuse, half-way. Args: bucket: as it would be named."""
    if not _NAME.fullmatch(name) or name.startswith(_NAMES_OF_AMAZON):
        raise Refused(
            f"NAME {name!r} cannot be used: a stack and a bucket are named after it. Take small letters, digits and "
            "single hyphens, a letter first, such as linkwatch-test."
        )
    if name.endswith(_FOUNDATION):
        raise Refused(
            f"NAME {name!r} cannot be used: the foundation of NAME {name.removesuffix(_FOUNDATION)!r} is called so."
        )
    if len(bucket) > _LONGEST_BUCKET:
        most = _LONGEST_BUCKET - (len(bucket) - len(name))
        raise Refused(f"NAME {name!r} is too long: in this region it may have {most} characters, it has {len(name)}.")


def check_settings(settings: Mapping[str, str], templates: Mapping[str, Parameters]) -> None:
    """Raise Refused for a parameter that does not exist, or a value that CloudFormation would refuse.

    Args: templates: what each takes. What several take is judged as the first has it, which hands it on.
    """
    known = {name for parameters in templates.values() for name in parameters} - NOT_SET_BY_HAND
    unknown = sorted(set(settings) - known)
    if unknown:
        raise Refused(f"there is no parameter {', '.join(unknown)}; there are {', '.join(sorted(known))}.")
    problems = []
    for name, value in settings.items():
        described = next(parameters[name] for parameters in templates.values() if name in parameters)
        found = list(_problems(described, value))
        if not found and name.endswith("Schedule"):
            found = [problem] if (problem := schedule_problem(value)) is not None else []
        problems += [f"{name} {problem}, not {value!r}." for problem in found]
    if problems:
        raise Refused(" ".join(problems))


def check_complete(templates: Mapping[str, Parameters], given: Mapping[str, set[str]]) -> None:
    """Raise Refused if a template lacks what it has no default for. Args: given: what each gets, from wherever."""
    missing = {
        name: described["Description"]
        for template, parameters in templates.items()
        for name, described in parameters.items()
        if "Default" not in described and name not in given[template]
    }
    if missing:
        words = "; ".join(f"{name} ({about.rstrip('.')})" for name, about in missing.items())
        example = " ".join(f"--set {name}=..." for name in missing)
        raise Refused(f'not everything is given that has no default: {words}. Add ARGS="{example}".')


def check_sender(values: Mapping[str, str]) -> None:
    """Raise Refused if SES would not send as `MailFrom`: it does so for an identity, and below one that is a domain.

    An address may have a label that the identity has not: links+week@example.com is sent for links@example.com. SES
    tells capitals apart in addresses, not in domains.
    """
    sender, identity = values["MailFrom"], values["MailIdentity"]
    local, _, domain = sender.rpartition("@")
    unlabelled = f"{local.partition('+')[0]}@{domain}"
    if identity not in (sender, unlabelled) and not f".{domain}".lower().endswith(f".{identity}".lower()):
        raise Refused(
            f"MailFrom {sender!r} is no address of MailIdentity {identity!r}: SES would not send as it. Set "
            "MailIdentity to its domain, or to the address itself."
        )


def check_functions_take(values: Mapping[str, str]) -> None:
    """Raise Refused, naming the parameter, if a function would refuse what it is given and so never begin.

    Args: values: of the application's parameters, as they would be; what only the stacks will tell may be missing.
    """
    known = _MADE_THEN | dict(values)
    for function in _template("application")["Resources"].values():
        if function["Type"] != "AWS::Lambda::Function":
            continue
        variables = function["Properties"]["Environment"]["Variables"]
        of_parameters = {variable: value["Ref"] for variable, value in variables.items() if isinstance(value, dict)}
        fixed = {variable: value for variable, value in variables.items() if variable not in of_parameters}
        given = {variable: known[name] for variable, name in of_parameters.items() if name in known}
        try:
            load_settings(HERE / "no-file-of-a-home", env=fixed | given)
        except ConfigurationError as error:
            problem = str(error)
            for variable, name in of_parameters.items():
                problem = problem.replace(variable, name)
            raise Refused(problem) from error


def _problems(described: Mapping[str, Any], value: str) -> Iterator[str]:
    """What a value must be and is not."""
    if "AllowedValues" in described and value not in map(str, described["AllowedValues"]):
        yield f"must be one of {', '.join(map(str, described['AllowedValues']))}"
    if "AllowedPattern" in described and not re.fullmatch(described["AllowedPattern"], value):
        yield described.get("ConstraintDescription", f"must look like {described['AllowedPattern']}").rstrip(".")
    if len(value) > int(described.get("MaxLength", len(value))):
        yield f"must have at most {described['MaxLength']} characters"
    if described["Type"] == "Number":
        lowest, highest = described.get("MinValue", 0), described.get("MaxValue", float("inf"))
        if not re.fullmatch(r"[0-9]{1,15}", value) or not lowest <= int(value) <= highest:
            yield f"must be a whole number from {lowest} to {highest}"
