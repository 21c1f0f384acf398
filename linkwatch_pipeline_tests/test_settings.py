"""Settings: where they come from, which one wins, and what is refused with which words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.settings import Settings, load_settings, settings_text


def load(
    tmp_path: Path, toml: str = "", *, env: Mapping[str, str] | None = None, fixture: bool = False, **flags: object
) -> Settings:
    file = tmp_path / "linkwatch.toml"
    file.write_text(toml, encoding="utf-8")
    return load_settings(file, env=env or {}, flags=flags, fixture=fixture)


def refusal(tmp_path: Path, toml: str = "", **given: Any) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, toml, **given)
    return str(refused.value)


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "absent.toml", env={}) == Settings()


def test_the_environment_wins_over_the_file_and_a_flag_over_both(tmp_path: Path) -> None:
    toml = "confirm = 2\nconcurrency = 3\nbatches = 4\n"
    env = {"LINKWATCH_CONCURRENCY": "5", "LINKWATCH_BATCHES": "6", "PATH": "/bin"}
    settings = load(tmp_path, toml, env=env, batches=7, confirm=None)
    assert (settings.confirm, settings.concurrency, settings.batches) == (2, 5, 7)


def test_every_setting_can_come_from_the_environment(tmp_path: Path) -> None:
    env = {
        "LINKWATCH_CONTACT": "https://docs.example.com/bot",
        "LINKWATCH_CONFIRM": "2",
        "LINKWATCH_CONCURRENCY": "4",
        "LINKWATCH_BATCHES": "3",
        "LINKWATCH_COOLDOWN_SECONDS": "1.5",
        "LINKWATCH_MAIL_FROM": "links@example.com",
        "LINKWATCH_PROFILE": "aws",
        "LINKWATCH_TABLE": "linkwatch",
        "LINKWATCH_ALLOW_ENDPOINT": "True",
        "LINKWATCH_ALLOWED_HOSTS": "Docs.Example.com, bücher.example",
    }
    assert {f"LINKWATCH_{field.name.upper()}" for field in fields(Settings)} == set(env)
    assert load(tmp_path, env=env) == Settings(
        contact="https://docs.example.com/bot",
        confirm=2,
        concurrency=4,
        batches=3,
        cooldown_seconds=1.5,
        mail_from="links@example.com",
        profile="aws",
        table="linkwatch",
        allow_endpoint=True,
        allowed_hosts=("docs.example.com", "xn--bcher-kva.example"),
    )


def test_the_new_file_explains_every_key_and_chooses_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, settings_text()) == Settings()


def test_the_defaults_in_the_new_file_are_the_real_ones() -> None:
    lines = settings_text().splitlines()
    written = tomllib.loads("\n".join(line[2:] for line in lines if " = " in line))
    assert written == {field.name: _plain(getattr(Settings(), field.name)) for field in fields(Settings)}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def test_an_unknown_key_in_the_file_is_refused_with_near_matches(tmp_path: Path) -> None:
    message = refusal(tmp_path, "concurency = 3\n")
    assert "'concurency'" in message
    assert "linkwatch.toml" in message
    assert "Did you mean concurrency?" in message


def test_a_table_in_the_file_is_an_unknown_key(tmp_path: Path) -> None:
    assert "unknown setting 'mail'" in refusal(tmp_path, '[mail]\nfrom = "links@example.com"\n')


def test_an_unknown_variable_is_refused_with_near_matches(tmp_path: Path) -> None:
    message = refusal(tmp_path, env={"LINKWATCH_COOLDOWN": "2"})
    assert "'LINKWATCH_COOLDOWN'" in message
    assert "Did you mean LINKWATCH_COOLDOWN_SECONDS?" in message


def test_a_variable_in_small_letters_is_refused_and_not_ignored(tmp_path: Path) -> None:
    assert "LINKWATCH_CONFIRM" in refusal(tmp_path, env={"LINKWATCH_confirm": "2"})


def test_a_key_like_nothing_we_know_lists_what_there_is(tmp_path: Path) -> None:
    message = refusal(tmp_path, "xyzzy = 1\n")
    assert all(field.name in message for field in fields(Settings))


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ('confirm = "2"', "confirm in"),
        ("confirm = true", "whole number from 1 to 10"),
        ("confirm = 0", "1 to 10"),
        ("confirm = 1.0", "whole number"),
        ("concurrency = 0", "concurrency in"),
        ("concurrency = 1000000", "1 to 200"),
        ("batches = -1", "batches in"),
        ("contact = 5", "contact in"),
        ('contact = "me (at) home"', "without spaces or parentheses"),
        ('contact = "a\\nX-Evil: 1"', "plain ASCII"),
        ('cooldown_seconds = "long"', "number of seconds"),
        ("cooldown_seconds = nan", "number of seconds"),
        ("cooldown_seconds = inf", "number of seconds"),
        ("cooldown_seconds = -1", "number of seconds"),
        ('mail_from = "nobody"', "not an e-mail address"),
        ("mail_from = 1", "mail_from in"),
        ('profile = "cloud"', "one of 'local', 'aws'"),
        ('table = "a/b"', "name of a DynamoDB table"),
        ('allow_endpoint = "yes"', "true or false"),
        ('allowed_hosts = "docs.example.com"', "a list of host names"),
        ("allowed_hosts = [1]", "a list of host names"),
        ('allowed_hosts = ["https://docs.example.com/"]', "not a host name"),
        ('allowed_hosts = ["a b"]', "not a host name"),
        ("confirm = ", "not valid TOML"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(tmp_path: Path, toml: str, words: str) -> None:
    message = refusal(tmp_path, toml)
    assert words in message
    assert "linkwatch.toml" in message


def test_a_variable_of_the_wrong_kind_is_refused_by_its_name(tmp_path: Path) -> None:
    assert "LINKWATCH_CONFIRM must be a whole number" in refusal(tmp_path, env={"LINKWATCH_CONFIRM": "two"})


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "linkwatch.toml"
    file.write_bytes(b"confirm = \xff\n")
    with pytest.raises(ConfigurationError, match="not valid TOML"):
        load_settings(file, env={})


@pytest.mark.parametrize("seconds", ["0", "0.99"])
def test_only_a_fixture_home_may_let_hosts_rest_for_less_than_a_second(tmp_path: Path, seconds: str) -> None:
    toml = f"cooldown_seconds = {seconds}\n"
    assert "at least 1 s" in refusal(tmp_path, toml)
    assert load(tmp_path, toml, fixture=True).cooldown_seconds == float(seconds)


def test_the_profile_aws_needs_a_table_and_is_nothing_for_a_fixture_home(tmp_path: Path) -> None:
    assert "LINKWATCH_TABLE" in refusal(tmp_path, 'profile = "aws"\n')
    toml = 'profile = "aws"\ntable = "linkwatch"\n'
    assert load(tmp_path, toml).table == "linkwatch"
    assert "fixture home" in refusal(tmp_path, toml, fixture=True)


def test_a_flag_in_a_variable_is_true_or_false(tmp_path: Path) -> None:
    assert load(tmp_path, env={"LINKWATCH_ALLOW_ENDPOINT": "false"}).allow_endpoint is False
    assert "true or false" in refusal(tmp_path, env={"LINKWATCH_ALLOW_ENDPOINT": "1"})
