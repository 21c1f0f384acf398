"""`linkwatch status` on real servers and a real site: both halves in one process, and what a reader sees."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from linkwatch_pipeline.adapters.fixture_site import FixtureSite
from linkwatch_pipeline_tests.entrypoints.terminal import Terminal
from linkwatch_pipeline_tests.services.postgresql import Postgres
from linkwatch_pipeline_tests.services.team import USER, Team

LINKWATCH = "import sys; from linkwatch_pipeline.entrypoints.cli import main; sys.exit(main())"


@pytest.fixture
def site() -> Iterator[FixtureSite]:
    served = FixtureSite(port=0)
    with served.running():
        yield served


@pytest.fixture
def watching(terminal: Terminal, team: Team, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal with the team's variables set, without a home yet."""
    for name, value in team.env.items():
        monkeypatch.setenv(name, value)
    return terminal


@pytest.fixture
def home(watching: Terminal, site: FixtureSite) -> Terminal:
    """The same with a home that reaches the site and nothing else."""
    watching.fine("init", "--fixture", f"{site.host}:{site.port}")
    return watching


def test_one_cycle_is_checked_written_and_shown(home: Terminal, site: FixtureSite, team: Team) -> None:
    up = team.add_service(f"{site.url}guide", name="guide")
    twin = team.add_service(f"{site.url}guide", name="twin")
    internal = team.add_service("http://169.254.169.254/latest/meta-data/", name="inner")
    ran = home.fine("status", "run", "--once")
    assert "3 services: 2 up, 1 down" in ran.out
    shown = {row["service_id"]: row for row in home.fine("status", "show", "--json").document}
    assert {name: shown[name]["status"] for name in shown} == {up: "UP", twin: "UP", internal: "DOWN"}
    assert shown[up]["source"] == "redis"
    assert shown[up]["age_s"] <= 60
    assert {len(team.rows(service)) for service in (up, twin, internal)} == {1}
    assert team.read_as_the_original(up)["status"] == "UP"
    table = home.fine("status", "show", "--user", USER).out
    assert table.splitlines()[0].split() == ["SERVICE", "NAME", "STATUS", "LATENCY", "MS", "AGE", "S", "URL"]
    history = home.fine("status", "show", "--history", internal, "--json").document
    assert [row["status"] for row in history] == ["DOWN"]
    assert home.fine("status", "show", "--history", internal).out.count("DOWN") == 1


def test_one_cycle_over_sqs(home: Terminal, site: FixtureSite, team: Team, request: pytest.FixtureRequest) -> None:
    cloud = request.getfixturevalue("ministack")
    with closing(cloud.client("sqs")) as client:
        url = client.create_queue(QueueName=f"cli-{os.getpid()}")["QueueUrl"]
    service = team.add_service(f"{site.url}guide")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**cloud.env, "SQS_QUEUE_URL": url}.items():
            patch.setenv(name, value)
        home.fine("status", "run", "--once")
    assert [row[1] for row in team.rows(service)] == ["UP"]


def test_a_cycle_with_trouble_ends_with_1_and_says_which(home: Terminal, site: FixtureSite, team: Team) -> None:
    team.add_service(f"{site.url}guide")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQS_QUEUE_URL", "http://127.0.0.1:9/queue")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        said = home.run("status", "run", "--once")
    assert said.code != 0
    assert "queue" in said.err


def test_changes_go_to_the_outbox_of_the_home_and_are_delivered_like_every_notice(
    home: Terminal, site: FixtureSite, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "STATUS_NOTICES" in home.run("status", "tell").err
    monkeypatch.setenv("STATUS_NOTICES", "on")
    service = team.add_service(f"{site.url}guide")
    team.add_service("http://10.0.0.1/")  # refused: down, and nobody is told
    home.fine("owner", f"user-{USER}", "ops@example.com")
    home.fine("status", "run", "--once")
    assert home.fine("outbox", "--json").document == []
    site.set(status=500)
    for _ in range(2):
        home.fine("status", "run", "--once")
    notices = home.fine("outbox", "--json").document
    assert [notice["transition_id"] for notice in notices] == [f"service-{service}:1"]
    assert "0 told" in home.fine("status", "tell").out
    home.fine("deliver")
    (mail,) = (home.home / "mail").glob("*.eml")
    assert f"Subject: [linkwatch] Down: service-{service}" in mail.read_text()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_until_interrupted_and_has_written_what_it_saw(
    home: Terminal, site: FixtureSite, team: Team, how: signal.Signals
) -> None:
    service = team.add_service(f"{site.url}guide")
    running = subprocess.Popen(
        [sys.executable, "-c", LINKWATCH, "--home", str(home.home), "status", "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert running.stdout is not None
    assert "1 services: 1 up, 0 down" in running.stdout.readline()
    second = home.run("status", "run", "--once")
    assert (second.code, second.out) == (1, "")
    running.send_signal(how)
    _, said = running.communicate(timeout=60)
    assert running.returncode == (130 if how is signal.SIGINT else 0), said
    assert "Traceback" not in said
    assert [row[1] for row in team.rows(service)] == ["UP"]
    assert team.read_as_the_original(service)["status"] == "UP"


def test_a_cycle_that_could_not_be_written_ends_with_1(home: Terminal, site: FixtureSite, team: Team) -> None:
    service = team.add_service(f"{site.url}guide")
    team.valkey.stop()
    try:
        said = home.run("status", "run", "--once")
    finally:
        team.valkey.start()
    assert said.code == 1
    assert "1 statuses could not be written" in said.err
    assert len(team.rows(service)) == 1


@pytest.mark.parametrize("missing", ["DATABASE_URL", "REDIS_URL"])
def test_a_missing_variable_is_named(watching: Terminal, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(missing)
    assert missing in watching.refused("status", "show")
    assert missing in watching.refused("status", "run", "--once")
    assert not watching.home.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STATUS_CONFIRM", "0"),
        ("STATUS_CONFIRM", "two"),
        ("STATUS_KEEP_HOURS", "23"),
        ("STATUS_NOTICES", "yes"),
        ("DATABASE_URL_SECRET_ARN", "arn:aws:secretsmanager:eu-west-1:1:secret:x"),
        ("REDIS_URL", "http://127.0.0.1"),
        ("DATABASE_URL", "mysql://u:hidden@127.0.0.1/x"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    watching: Terminal, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    refused = watching.refused("status", "show")
    assert name in refused
    assert "hidden" not in refused


def test_a_database_that_cannot_serve_is_told_in_one_sentence(
    watching: Terminal, team: Team, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", postgres.new_database())
    assert "status-tables.sql" in watching.refused("status", "show")
    monkeypatch.setenv("DATABASE_URL", f"postgresql://watcher:wrong-word@127.0.0.1:{postgres.port}/team_1")
    assert "wrong-word" not in watching.refused("status", "show")
    monkeypatch.setenv("DATABASE_URL", "postgresql://watcher:x@127.0.0.1:9/team_1")
    assert "cannot be reached" in watching.refused("status", "show")


@pytest.mark.parametrize(
    ("name", "value", "instead_of"),
    [("SQS_QUEUE_URL", "http://127.0.0.1:9/queue", ""), ("DATABASE_URL_SECRET_ARN", "secret", "DATABASE_URL")],
)
def test_aws_without_a_region_is_told_in_one_sentence(
    watching: Terminal, name: str, value: str, instead_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for region in ("AWS_DEFAULT_REGION", "AWS_REGION", *([instead_of] if instead_of else [])):
        monkeypatch.delenv(region, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv(name, value)
    refused = watching.refused("status", "run", "--once")
    assert name in refused
    assert "region" in refused


def test_a_long_name_leaves_the_table_readable(watching: Terminal, team: Team) -> None:
    team.add_service("https://a.example/", name="n" * 10_000)
    assert max(map(len, watching.fine("status", "show").out.splitlines())) < 160
    assert watching.fine("status", "show", "--json").document[0]["name"] == "n" * 10_000


def test_user_and_history_exclude_each_other(watching: Terminal) -> None:
    assert "--user" in watching.refused("status", "show", "--user", "u", "--history", "s")


def test_a_home_of_the_public_internet_refuses_a_loopback_service(
    watching: Terminal, site: FixtureSite, team: Team
) -> None:
    service = team.add_service(f"{site.url}guide")
    watching.fine("status", "run", "--once")
    assert team.read_as_the_original(service)["status"] == "DOWN"
