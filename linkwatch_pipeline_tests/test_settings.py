"""Settings: where they come from, which one wins, and what is refused with which words."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from linkwatch_pipeline.domain.allowances import Allowance
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.settings import Settings, load_settings, load_smtp_password, settings_text
from linkwatch_pipeline.settings.sources import MAX_BYTES


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
        "LINKWATCH_MAIL": "smtp",
        "LINKWATCH_MAIL_FROM": "links@example.com",
        "LINKWATCH_SMTP_HOST": "mail.example.com",
        "LINKWATCH_SMTP_PORT": "2525",
        "LINKWATCH_SMTP_SECURITY": "tls",
        "LINKWATCH_SMTP_USERNAME": "linkwatch",
        "LINKWATCH_SES_REGION": "eu-west-1",
        "LINKWATCH_SES_CONFIGURATION_SET": "linkwatch",
        "LINKWATCH_PROFILE": "local",
        "LINKWATCH_ALLOWED_HOSTS": "Docs.Example.com, bücher.example",
        "LINKWATCH_ALLOWANCES": '{"Docs.Example.com": {"visits": 2, "agreed_with": " Ada, docs team "}}',
        "LINKWATCH_BREAKER": "false",
        "LINKWATCH_BREAKER_HOSTS": "7",
        "LINKWATCH_BREAKER_HOSTS_PERCENT": "15",
        "LINKWATCH_BREAKER_LINKS": "30",
        "LINKWATCH_BREAKER_LINKS_PERCENT": "40",
        "LINKWATCH_CANARIES": "home, docs.example.com",
        "LINKWATCH_OPS_WEBHOOK": "https://alerts.example.com/hook",
        "LINKWATCH_OPS_FILE": "ops/alarms.jsonl",
        "LINKWATCH_TABLE": "linkwatch",
        "LINKWATCH_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/work",
        "LINKWATCH_DEAD_LETTER_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/dead",
        "LINKWATCH_METRICS_NAMESPACE": "links",
        "LINKWATCH_WAREHOUSE_BUCKET": "links-warehouse/weekly",
        "LINKWATCH_ALLOW_ENDPOINT": "true",
    }
    assert {f"LINKWATCH_{field.name.upper()}" for field in fields(Settings)} == set(env)
    assert load(tmp_path, env=env) == Settings(
        contact="https://docs.example.com/bot",
        confirm=2,
        concurrency=4,
        batches=3,
        cooldown_seconds=1.5,
        mail="smtp",
        mail_from="links@example.com",
        smtp_host="mail.example.com",
        smtp_port=2525,
        smtp_security="tls",
        smtp_username="linkwatch",
        ses_region="eu-west-1",
        ses_configuration_set="linkwatch",
        profile="local",
        allowed_hosts=("docs.example.com", "xn--bcher-kva.example"),
        allowances={"docs.example.com": Allowance(visits=2, agreed_with="Ada, docs team")},
        breaker=False,
        breaker_hosts=7,
        breaker_hosts_percent=15,
        breaker_links=30,
        breaker_links_percent=40,
        canaries=("home", "docs.example.com"),
        ops_webhook="https://alerts.example.com/hook",
        ops_file="ops/alarms.jsonl",
        table="linkwatch",
        queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/work",
        dead_letter_queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/dead",
        metrics_namespace="links",
        warehouse_bucket="links-warehouse/weekly",
        allow_endpoint=True,
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
    assert "unknown setting 'smtp'" in refusal(tmp_path, '[smtp]\nhost = "mail.example.com"\n')


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
        ('mail = "post"', 'one of "files", "smtp", "ses"'),
        ("mail = true", "mail in"),
        ('smtp_host = "smtp://mail.example.com/"', "without a scheme"),
        ("smtp_port = 70000", "0 to 65535"),
        ('smtp_security = "ssl"', '"starttls", "tls", "none"'),
        ('smtp_username = "a\\nb"', "visible characters"),
        ('ses_region = "eu west"', "ses_region in"),
        ('ses_configuration_set = "a/b"', "at most 64 letters"),
        ('smtp_password = "secret"', "LINKWATCH_SMTP_PASSWORD_FILE"),
        ('profile = "cloud"', "one of 'local'"),
        ('table = "a/b"', "name of a DynamoDB table"),
        ('queue_url = "work"', "the URL of an SQS queue"),
        ('metrics_namespace = "AWS/foo"', "not beginning with AWS/"),
        ('metrics_namespace = ""', "1 to 255 letters"),
        ("allow_endpoint = 1", "true or false"),
        ('allowed_hosts = "docs.example.com"', "a list of host names"),
        ("allowed_hosts = [1]", "a list of host names"),
        ('allowed_hosts = ["https://docs.example.com/"]', "not a host name"),
        ('allowed_hosts = ["a b"]', "not a host name"),
        ("breaker = 1", "true or false"),
        ("ops_webhook = 1", "ops_webhook in"),
        ('ops_webhook = "alerts.example.com/hook"', "begin with http:// or https://"),
        ('ops_webhook = "ftp://alerts.example.com/"', "begin with http:// or https://"),
        ('ops_webhook = "https://"', "begin with http:// or https://"),
        ('ops_webhook = "https://h:99999/"', "cannot be read"),
        ('ops_webhook = "https://me:pw@alerts.example.com/"', "user name"),
        ('ops_webhook = "https://alerts.example.com/\\u0007"', "beyond ASCII"),
        ("ops_file = 1", "ops_file in"),
        ('ops_file = "alarms/"', "the path of a file"),
        ("breaker_hosts = 0", "1 to 1000000"),
        ("breaker_links_percent = 101", "0 to 100"),
        ('canaries = "home"', "a list of link ids"),
        ('canaries = ["no such id"]', "not a link id"),
        ("confirm = ", "not valid TOML"),
        ("canaries = " + "[" * 5_000, "nested too deeply"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(tmp_path: Path, toml: str, words: str) -> None:
    message = refusal(tmp_path, toml)
    assert words in message
    assert "linkwatch.toml" in message


SMTP: dict[str, Any] = {"mail": "smtp", "smtp_host": "mail.example.com", "mail_from": "links@example.com"}
SES: dict[str, Any] = {"mail": "ses", "ses_configuration_set": "linkwatch", "mail_from": "links@example.com"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({**SMTP, "smtp_host": ""}, "needs smtp_host"),
        ({**SES, "ses_configuration_set": ""}, "needs ses_configuration_set"),
        ({**SMTP, "mail_from": None}, "set mail_from"),
        ({**SES, "mail_from": None}, "set mail_from"),
        ({**SMTP, "smtp_username": "linkwatch", "smtp_security": "none"}, "show the password to the network"),
        ({**SMTP, "fixture": True}, "a fixture home mails only to files"),
        ({**SES, "fixture": True}, "a fixture home mails only to files"),
    ],
)
def test_mail_settings_that_do_not_fit_together_are_refused(tmp_path: Path, flags: dict[str, Any], words: str) -> None:
    load(tmp_path, **SMTP)
    load(tmp_path, **SES)
    assert words in refusal(tmp_path, **flags)


class TestPassword:
    def test_it_comes_from_a_variable_or_from_the_file_that_one_names(self, tmp_path: Path) -> None:
        file = tmp_path / "password"
        file.write_text("correct horse\r\nand what else stands there\n")
        assert load_smtp_password({}) == ""
        assert load_smtp_password({"LINKWATCH_SMTP_PASSWORD": " as it is "}) == " as it is "
        assert load_smtp_password({"LINKWATCH_SMTP_PASSWORD_FILE": str(file)}) == "correct horse"

    def test_a_byte_order_mark_is_no_part_of_it(self, tmp_path: Path) -> None:
        (tmp_path / "password").write_text("correct horse\n", encoding="utf-8-sig")
        assert load_smtp_password({"LINKWATCH_SMTP_PASSWORD_FILE": str(tmp_path / "password")}) == "correct horse"

    def test_it_is_no_setting_and_no_unknown_variable(self, tmp_path: Path) -> None:
        env = {"LINKWATCH_SMTP_PASSWORD": "secret", "LINKWATCH_SMTP_PASSWORD_FILE": "somewhere"}
        assert load(tmp_path, env=env) == Settings()
        assert "password" not in " ".join(field.name for field in fields(Settings))

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (None, "cannot be read"),
            (b"", "is empty"),
            (b"\nsecret", "is empty"),
            (b"\xff", "UTF-8"),
            (b"x" * 5000, "longer than 4096"),
        ],
    )
    def test_a_file_that_gives_none_is_refused(self, tmp_path: Path, content: bytes | None, words: str) -> None:
        file = tmp_path / "password"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ConfigurationError, match=words):
            load_smtp_password({"LINKWATCH_SMTP_PASSWORD_FILE": str(file)})

    def test_one_beyond_ascii_is_refused_without_a_word_of_it(self) -> None:
        with pytest.raises(ConfigurationError, match="beyond ASCII") as refused:
            load_smtp_password({"LINKWATCH_SMTP_PASSWORD": "pass\u00fcort"})
        assert "\u00fc" not in str(refused.value)

    def test_two_sources_are_one_too_many(self) -> None:
        with pytest.raises(ConfigurationError, match="both set"):
            load_smtp_password({"LINKWATCH_SMTP_PASSWORD": "a", "LINKWATCH_SMTP_PASSWORD_FILE": "b"})


def test_a_variable_of_the_wrong_kind_is_refused_by_its_name(tmp_path: Path) -> None:
    assert "LINKWATCH_CONFIRM must be a whole number" in refusal(tmp_path, env={"LINKWATCH_CONFIRM": "two"})


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "linkwatch.toml"
    file.write_bytes(b"confirm = \xff\n")
    with pytest.raises(ConfigurationError, match="is not text in UTF-8; save it so"):
        load_settings(file, env={})


def test_a_byte_order_mark_is_no_setting(tmp_path: Path) -> None:
    (tmp_path / "linkwatch.toml").write_text("confirm = 3\n", encoding="utf-8-sig")
    assert load_settings(tmp_path / "linkwatch.toml", env={}).confirm == 3


def test_what_never_ends_is_no_settings_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (MAX_BYTES + 1))
    refused = {"pipe.toml": "not a regular file", "large.toml": "larger than 1 MB"}
    for file, words in {**refused, str(tmp_path): "Is a directory"}.items():
        with pytest.raises(ConfigurationError, match=words):
            load_settings(tmp_path / file, env={})


@pytest.mark.parametrize("seconds", ["0", "0.99"])
def test_only_a_fixture_home_may_let_hosts_rest_for_less_than_a_second(tmp_path: Path, seconds: str) -> None:
    toml = f"cooldown_seconds = {seconds}\n"
    assert "at least 1 s" in refusal(tmp_path, toml)
    assert load(tmp_path, toml, fixture=True).cooldown_seconds == float(seconds)


def test_an_allowance_is_read_from_a_table_of_its_own(tmp_path: Path) -> None:
    settings = load(tmp_path, '[allowances."docs.example.com"]\nvisits = 3\nagreed_with = "Ada, 2026-11-02"\n')
    assert settings.allowances == {"docs.example.com": Allowance(visits=3, agreed_with="Ada, 2026-11-02")}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{visits = 2}", "has no agreed_with"),
        ('{visits = 2, agreed_with = " "}', "has no agreed_with"),
        ("{visits = 2, agreed_with = 7}", "has no agreed_with"),
        ('{agreed_with = "Ada"}', "visits of 'docs.example.com' are None. Give a whole number from 2 to 10"),
        ('{visits = 1, agreed_with = "Ada"}', "a whole number from 2 to 10"),
        ('{visits = 11, agreed_with = "Ada"}', "a whole number from 2 to 10"),
        ('{visits = true, agreed_with = "Ada"}', "a whole number from 2 to 10"),
        ('{visits = 2, agreed_with = "Ada", cooldown = 0}', "not described rightly"),
        ("3", "not described rightly"),
    ],
)
def test_an_allowance_without_an_agreement_or_a_sensible_number_is_refused(
    tmp_path: Path, entry: str, why: str
) -> None:
    said = refusal(tmp_path, f'allowances = {{"docs.example.com" = {entry}}}')
    assert said.startswith("allowances in ")
    assert why in said


@pytest.mark.parametrize("value", ["7", '["docs.example.com"]', '{"https://docs.example.com/" = {}}'])
def test_allowances_are_a_table_of_host_names(tmp_path: Path, value: str) -> None:
    assert "allowances in " in refusal(tmp_path, f"allowances = {value}")


AGREED = '{"visits": 2, "agreed_with": "Ada"}'


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (f'{{"docs.example.com": {AGREED}, "DOCS.example.com.": {AGREED}}}', "docs.example.com"),
        (f'{{"docs.example.com": {AGREED}, "docs.example.com": {AGREED}}}', "docs.example.com"),
        ('{"docs.example.com": {"visits": 2, "visits": 3, "agreed_with": "Ada"}}', "visits"),
    ],
)
def test_allowances_in_a_variable_that_contradict_each_other_are_refused(tmp_path: Path, value: str, name: str) -> None:
    said = refusal(tmp_path, env={"LINKWATCH_ALLOWANCES": value})
    assert said == f"LINKWATCH_ALLOWANCES: '{name}' stands there twice. Leave one of the two."


def test_a_host_that_a_file_allows_twice_is_refused(tmp_path: Path) -> None:
    agreed = 'visits = 2\nagreed_with = "Ada"\n'
    said = refusal(tmp_path, f'[allowances."docs.example.com"]\n{agreed}[allowances."DOCS.example.com."]\n{agreed}')
    assert said.startswith("allowances in ")
    assert "'docs.example.com' stands there twice" in said


def test_allowances_in_a_variable_that_are_nested_too_deeply_are_no_table(tmp_path: Path) -> None:
    assert refusal(tmp_path, env={"LINKWATCH_ALLOWANCES": "[" * 20_000}).startswith("LINKWATCH_ALLOWANCES must be")


def test_a_webhook_that_is_refused_is_not_repeated_since_it_may_be_a_secret(tmp_path: Path) -> None:
    said = refusal(tmp_path, env={"LINKWATCH_OPS_WEBHOOK": "hooks.example.com/T0P-S3CRET"})
    assert "LINKWATCH_OPS_WEBHOOK" in said
    assert "S3CRET" not in said


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("http://127.0.0.1:9000/", False),
        ("http://[::1]:9000/", False),
        ("http://localhost:9000/", False),
        ("https://alerts.example.com/", True),
    ],
)
def test_a_fixture_home_alarms_only_this_machine(tmp_path: Path, url: str, refused: bool) -> None:
    with pytest.raises(ConfigurationError, match="fixture home") if refused else nullcontext():
        load_settings(tmp_path / "linkwatch.toml", env={"LINKWATCH_OPS_WEBHOOK": url}, fixture=True)


def test_a_fixture_home_keeps_everything_to_itself(tmp_path: Path) -> None:
    assert "fixture home" in refusal(tmp_path, 'profile = "aws"', fixture=True)


def test_the_profile_aws_names_what_it_needs(tmp_path: Path) -> None:
    assert "LINKWATCH_TABLE" in refusal(tmp_path, 'profile = "aws"')
    assert load(tmp_path, 'profile = "aws"\ntable = "links"').table == "links"


QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/work"


@pytest.mark.parametrize(
    "dead",
    [QUEUE, QUEUE.replace("https", "http"), QUEUE.replace("/work", "//work"), "https://eu-west-1.queue.example/1/work"],
)
def test_a_queue_is_not_that_of_its_own_dead_letters(tmp_path: Path, dead: str) -> None:
    aws = 'profile = "aws"\ntable = "links"\n'
    env = {"LINKWATCH_QUEUE_URL": QUEUE, "LINKWATCH_DEAD_LETTER_QUEUE_URL": dead}
    toml = f'queue_url = "{QUEUE}"\ndead_letter_queue_url = "{dead}"\n'
    for said in (refusal(tmp_path, aws, env=env), refusal(tmp_path, aws + toml)):
        assert said.startswith("dead_letter_queue_url and queue_url name the same queue, 'work'; set dead_letter_")
    assert load(tmp_path, toml).profile == "local"  # which asks neither


@pytest.mark.parametrize("ending", ["/", " ", "\n", "?"])
def test_a_queue_s_url_ends_with_its_name(tmp_path: Path, ending: str) -> None:
    said = refusal(tmp_path, env={"LINKWATCH_DEAD_LETTER_QUEUE_URL": QUEUE + ending})
    assert said.startswith("LINKWATCH_DEAD_LETTER_QUEUE_URL must be the URL of an SQS queue")
