"""Dagster on ECS and under compose: what can be known of it without an account and without Docker. Nothing was built.

Dagster's own code judges its settings, cfn-lint and these tests the template, click the commands of the containers.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest
import yaml

from linkwatch_pipeline_tests.deploy.templates import (
    DEPLOY,
    ROOT,
    Node,
    as_list,
    read_template,
    resources,
    statements,
    walk,
)
from linkwatch_pipeline_tests.services.postgresql import PASSWORD, Postgres

FOLDER = DEPLOY / "dagster"
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: Node = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
ECS = read_template("dagster-ecs")
ROLES = resources(ECS, "AWS::IAM::Role")
TASKS = resources(ECS, "AWS::ECS::TaskDefinition")
CONTAINERS = {
    (task, container["Name"]): container for task in TASKS for container in TASKS[task]["ContainerDefinitions"]
}
OURS = {name: service for name, service in COMPOSE["services"].items() if name != "postgres"}

# The only statements whose resource is open, and why.
OPEN = {
    "LogInToRegistry": ("*", "ECR knows no resource for its login"),
    "WatchAndStopRuns": ("*", "a task has no name before it runs; a condition names the cluster instead"),
    "TagRuns": ("*", "likewise; a condition admits tagging only while a task is started"),
    "ReadDefinitionsAndNetwork": ("*", "neither ECS nor EC2 knows resources for these reads"),
    "ReadDefinitions": ("*", "ECS knows no resource for this read"),
    "PutNumbers": ("*", "CloudWatch knows no resource for numbers; a condition names the namespace instead"),
    "SendMail": (
        "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/*",
        "SES judges the recipient's identity too; a condition names the sender instead",
    ),
    "ForwardPorts": ("*", "the channels of port forwarding are no resources"),
    "KeepComputeLogs": ("${LogsBucket.Arn}/compute-logs/*", "S3 names objects by path; it is one folder of our bucket"),
}


@cache
def dagster_settings(name: str) -> Node:
    settings: Node = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return settings


def variables_of(settings: Node) -> set[str]:
    """The variables that Dagster's settings ask for."""
    return {node["env"] for node in walk(settings) if isinstance(node, dict) and set(node) == {"env"}}


class TestDagsterSettings:
    @pytest.fixture
    def home(self, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A DAGSTER_HOME with one of the two files."""
        text = (FOLDER / request.param).read_text(encoding="utf-8")
        (tmp_path / "dagster.yaml").write_text(text, encoding="utf-8")
        for name in variables_of(dagster_settings(request.param)):
            monkeypatch.setenv(name, "given")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        return tmp_path

    @pytest.mark.parametrize("home", ["dagster.yaml", "dagster-compose.yaml"], indirect=True)
    def test_dagster_accepts_it_and_each_class_its_own_part(self, home: Path) -> None:
        from dagster._config import process_config, resolve_to_config_type
        from dagster._core.instance.config import dagster_instance_config

        settings, custom = dagster_instance_config(str(home))
        assert custom is None
        named = [part for part in settings.values() if isinstance(part, dict) and {"module", "class"} <= set(part)]
        assert len(named) == 4
        for part in named:
            owner = getattr(import_module(part["module"]), part["class"])
            checked = process_config(resolve_to_config_type(owner.config_type()), part.get("config", {}))
            assert checked.success, (part["class"], checked.errors)

    def test_compose_differs_only_in_where_runs_and_logs_are(self) -> None:
        ecs, compose = dict(dagster_settings("dagster.yaml")), dict(dagster_settings("dagster-compose.yaml"))
        for settings in (ecs, compose):
            del settings["run_launcher"], settings["compute_logs"]
        database = dict(ecs["storage"]["postgres"]["postgres_db"])
        assert database.pop("params") == {"sslmode": "require"}
        assert {**ecs, "storage": {"postgres": {"postgres_db": database}}} == compose

    def test_a_run_is_a_task_of_the_template_and_no_secret_is_looked_for(self) -> None:
        launcher = dagster_settings("dagster.yaml")["run_launcher"]["config"]
        assert ("RunTaskDefinition", launcher["container_name"]) in CONTAINERS
        assert launcher["secrets_tag"] is None

    def test_killed_runs_are_noticed_and_weekly_ones_are_kept_apart(self) -> None:
        settings = dagster_settings("dagster.yaml")
        assert settings["run_monitoring"]["enabled"] is True
        assert settings["telemetry"] == {"enabled": False}
        [limit] = settings["concurrency"]["runs"]["tag_concurrency_limits"]
        assert limit == {"key": "linkwatch/kind", "value": "weekly", "limit": 1}

    def test_the_workspace_is_one_code_server(self) -> None:
        from dagster._core.workspace.config_schema import process_workspace_config

        workspace = yaml.safe_load((FOLDER / "workspace.yaml").read_text(encoding="utf-8"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DAGSTER_CODE_SERVER", "localhost")
            assert process_workspace_config(workspace).success

    def test_its_storage_works_on_a_real_postgresql(
        self, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("dagster_postgres", reason="the extra aws is not installed whole")
        import dagster as dg

        url = urlsplit(postgres.new_database())
        given = {"USERNAME": url.username, "PASSWORD": PASSWORD, "HOST": url.hostname, "DB": url.path.strip("/")}
        for name, value in given.items():
            monkeypatch.setenv(f"DAGSTER_PG_{name}", str(value))
        settings = (FOLDER / "dagster-compose.yaml").read_text(encoding="utf-8")
        # Here it has another port, and no folder of the image.
        settings = settings.replace("port: 5432", f"port: {url.port}").replace("/var/lib/linkwatch", str(tmp_path))
        (tmp_path / "dagster.yaml").write_text(settings, encoding="utf-8")

        @dg.job
        def nothing() -> None:
            """A run without steps."""

        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            assert nothing.execute_in_process(instance=instance).success
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            assert [run.job_name for run in instance.get_runs()] == ["nothing"]

    def test_what_it_needs_is_locked(self) -> None:
        pytest.importorskip("dagster_postgres", reason="the extra aws is not installed whole")
        lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
        assert {"dagster", "dagster-aws", "dagster-postgres", "dagster-webserver", "boto3"} <= set(
            re.findall(r"^([a-z0-9-]+)==", lock, flags=re.MULTILINE)
        )


class TestImage:
    def test_it_is_not_root_and_every_package_is_pinned_by_its_hash(self) -> None:
        assert re.findall(r"^USER (.+)$", DOCKERFILE, flags=re.MULTILINE) == ["10001:10001"]
        assert "pip install --require-hashes -r requirements.lock" in DOCKERFILE
        assert "pip install --no-deps --no-build-isolation ." in DOCKERFILE
        assert len(re.findall(r"pip install", DOCKERFILE)) == 2

    def test_its_base_is_a_parameter_and_no_registry_is_named(self) -> None:
        assert re.findall(r"^(?:ARG|FROM) .+$", DOCKERFILE, flags=re.MULTILINE) == [
            "ARG BASE=python:3.11-slim",
            "FROM ${BASE}",
        ]
        assert "://" not in DOCKERFILE

    def test_what_it_copies_is_there_and_admitted_by_the_ignore_file(self) -> None:
        admitted = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
        for sources in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, flags=re.MULTILINE):
            for source in sources.split():
                assert (ROOT / source).exists(), source
                assert f"!{source}" in admitted or f"!{Path(source).parent}" in admitted, source

    @pytest.mark.parametrize(
        "command", [*(s["command"] for s in OURS.values()), *(c["Command"] for c in CONTAINERS.values())]
    )
    def test_each_command_exists_with_its_options(self, command: list[str]) -> None:
        assert Path(sys.executable).with_name(command[0]).exists()
        _parse(_program(command[0]), command[1:])


class TestCompose:
    def test_it_has_what_is_promised_and_one_daemon(self) -> None:
        assert set(COMPOSE["services"]) == {
            "postgres",
            "code-server",
            "webserver",
            "daemon",
            "worker",
            "health",
        }
        assert COMPOSE["services"]["daemon"]["deploy"] == {"replicas": 1}

    def test_nothing_is_reachable_from_elsewhere(self) -> None:
        ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
        assert ports == ["127.0.0.1:3000:3000"]

    @pytest.mark.parametrize("name", sorted(OURS))
    def test_each_service_may_write_its_home_only(self, name: str) -> None:
        service = OURS[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert [volume.split(":")[0] for volume in service["volumes"] if not volume.endswith(":ro")] == ["home"]

    def test_what_dagster_asks_for_is_given_and_the_password_comes_from_outside(self) -> None:
        asked = variables_of(dagster_settings("dagster-compose.yaml")) | {"DAGSTER_CODE_SERVER"}
        given = OURS["daemon"]["environment"]
        assert asked <= set(given)
        assert given["DAGSTER_PG_PASSWORD"].startswith("${DAGSTER_PG_PASSWORD:?")

    def test_the_example_of_its_variables_holds_settings_that_exist_and_no_secret(self) -> None:
        lines = (FOLDER / "linkwatch.env.example").read_text(encoding="utf-8").splitlines()
        values = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        assert values["DAGSTER_PG_PASSWORD"] == ""
        assert {name for name in values if name.startswith("LINKWATCH_")} <= _settings()
        ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
        assert "deploy/dagster/linkwatch.env" in ignored


class TestEcs:
    def test_cfn_lint_finds_nothing(self) -> None:
        command = [str(Path(sys.executable).with_name("cfn-lint")), "--format", "parseable", "--"]
        done = subprocess.run([*command, str(DEPLOY / "dagster-ecs.yaml")], capture_output=True, text=True, timeout=110)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr

    def test_nothing_comes_in_and_there_is_no_load_balancer(self) -> None:
        kinds = {resource["Type"] for resource in ECS["Resources"].values()}
        assert not any("LoadBalanc" in kind for kind in kinds)
        groups = resources(ECS, "AWS::EC2::SecurityGroup")
        assert "SecurityGroupIngress" not in groups["TasksGroup"]
        for group in groups.values():
            for rule in group.get("SecurityGroupIngress", ()):
                assert rule["SourceSecurityGroupId"] == {"Ref": "TasksGroup"}
                assert "CidrIp" not in rule
        assert resources(ECS, "AWS::RDS::DBInstance")["Database"]["PubliclyAccessible"] is False

    def test_there_is_one_daemon_and_two_never_overlap(self) -> None:
        assert [name for name in CONTAINERS if name[1] == "daemon"] == [("DagsterTaskDefinition", "daemon")]
        service = resources(ECS, "AWS::ECS::Service")["DagsterService"]
        assert service["DesiredCount"] == 1
        assert service["DeploymentConfiguration"]["MaximumPercent"] == 100
        assert service["DeploymentConfiguration"]["MinimumHealthyPercent"] == 0

    def test_the_database_login_reaches_containers_as_a_secret_only(self) -> None:
        for key, container in CONTAINERS.items():
            plain = {variable["Name"] for variable in container["Environment"]}
            secret = {variable["Name"] for variable in container.get("Secrets", ())}
            assert not any("PASSWORD" in name for name in plain)
            assert secret == (set() if key[1] == "worker" else {"DAGSTER_PG_USERNAME", "DAGSTER_PG_PASSWORD"})
            if key[1] != "worker":
                assert variables_of(dagster_settings("dagster.yaml")) <= plain | secret
            assert {name for name in plain if name.startswith("LINKWATCH_")} <= _settings()

    @pytest.mark.parametrize("role", sorted(ROLES))
    def test_no_role_holds_a_wildcard_that_is_not_explained(self, role: str) -> None:
        assert "ManagedPolicyArns" not in ROLES[role]
        for statement in statements(ROLES[role]):
            assert statement["Effect"] == "Allow"
            assert not {"NotAction", "NotResource"} & set(statement)
            for action in as_list(statement["Action"]):
                assert re.fullmatch(r"[a-z0-9]+:[A-Za-z]+", action), action
            for value in _open_ended(statement["Resource"]):
                assert value == OPEN[statement["Sid"]][0], statement

    def test_every_explanation_is_needed(self) -> None:
        used = {s["Sid"] for role in ROLES.values() for s in statements(role) if list(_open_ended(s["Resource"]))}
        assert used == set(OPEN)

    def test_open_statements_that_act_are_narrowed_by_a_condition(self) -> None:
        conditions = {s["Sid"]: s.get("Condition") for s in statements(ROLES["DagsterRole"])}
        cluster = {"ArnEquals": {"ecs:cluster": {"Fn::GetAtt": ["Cluster", "Arn"]}}}
        assert conditions["LaunchRuns"] == conditions["WatchAndStopRuns"] == cluster
        assert conditions["TagRuns"] == {"StringEquals": {"ecs:CreateAction": "RunTask"}}
        assert conditions["HandOverRoles"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
        (send,) = [s for s in statements(ROLES["RunRole"]) if s["Sid"] == "SendMail"]
        assert send["Condition"] == {"StringEquals": {"ses:FromAddress": {"Ref": "MailFrom"}}}
        assert conditions["PutNumbers"] == {"StringEquals": {"cloudwatch:namespace": {"Ref": "MetricsNamespace"}}}

    def test_only_the_two_roles_of_a_run_may_be_handed_over(self) -> None:
        passed = [
            s["Resource"] for role in ROLES.values() for s in statements(role) if "iam:PassRole" in as_list(s["Action"])
        ]
        assert passed == [[{"Fn::GetAtt": ["RunRole", "Arn"]}, {"Fn::GetAtt": ["ExecutionRole", "Arn"]}]]

    def test_who_may_do_what(self) -> None:
        may = {role: {action for s in statements(ROLES[role]) for action in as_list(s["Action"])} for role in ROLES}
        assert {role for role in may if "ses:SendEmail" in may[role]} == {"RunRole"}
        assert {role for role in may if "sqs:DeleteMessage" in may[role]} == {"RunRole", "WorkerRole"}
        [settles] = [s for s in statements(ROLES["RunRole"]) if "sqs:DeleteMessage" in as_list(s["Action"])]
        assert settles["Resource"] == {"Ref": "DeadLetterQueueArn"}  # a run ticks; the work itself it leaves to workers
        assert {role for role in may if "ecs:RunTask" in may[role]} == {"DagsterRole"}
        assert {role for role in may if "secretsmanager:GetSecretValue" in may[role]} == {"ExecutionRole"}

    def test_what_lasts_outlives_the_stack(self) -> None:
        policies = {name: ECS["Resources"][name]["DeletionPolicy"] for name in ("Database", "Files", "LogsBucket")}
        assert policies == {"Database": "Snapshot", "Files": "Retain", "LogsBucket": "Retain"}

    def test_logs_are_kept_for_fourteen_days(self) -> None:
        [log] = resources(ECS, "AWS::Logs::LogGroup").values()
        assert log["RetentionInDays"] == 14


def _open_ended(resource: Any) -> Iterator[str]:
    return (value for value in walk(resource) if isinstance(value, str) and "*" in value)


@cache
def _settings() -> set[str]:
    from dataclasses import fields

    from linkwatch_pipeline.settings import Settings

    return {f"LINKWATCH_{field.name.upper()}" for field in fields(Settings)}


def _program(name: str) -> click.Command:
    """The command behind a console script."""
    if name == "linkwatch":
        from linkwatch_pipeline.entrypoints.cli import linkwatch

        return linkwatch
    [script] = entry_points(group="console_scripts", name=name)
    found: click.Command = import_module(script.module).cli
    return found


def _parse(command: click.Command, words: list[str]) -> None:
    """Let click read the words as it would, without running anything."""
    context = command.make_context(command.name, list(words), resilient_parsing=True)
    rest = [*context._protected_args, *context.args] if isinstance(command, click.Group) else []
    if rest and isinstance(command, click.Group):
        name, found, left = command.resolve_command(context, rest)
        assert found is not None, name
        _parse(found, left)
    else:
        command.make_parser(context).parse_args(list(words))
