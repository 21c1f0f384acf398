"""Makes and opens homes: finds the folder, checks the settings, and puts an `App` together."""

from __future__ import annotations

import os
import random
import ssl
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from linkwatch_pipeline.adapters.clock import SystemClock
from linkwatch_pipeline.adapters.fetch.allowed_hosts import AllowedHosts
from linkwatch_pipeline.adapters.fetch.policy import FixturePolicy, Policy, PublicPolicy
from linkwatch_pipeline.adapters.fetch.resolver import Resolver
from linkwatch_pipeline.adapters.home import FixtureMark, Home, complete_home, find_home
from linkwatch_pipeline.bootstrap.app import App
from linkwatch_pipeline.bootstrap.local import open_database
from linkwatch_pipeline.bootstrap.parts import SilentProgress
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.domain.hosts import Chance
from linkwatch_pipeline.ports import Clock, Progress
from linkwatch_pipeline.settings import HOME_VARIABLE, Settings, load_settings, load_smtp_password, settings_text

DEFAULT_HOME = ".linkwatch"
SKEW_BETWEEN_MACHINES = timedelta(seconds=1)


def build_app(
    folder: Path,
    *,
    env: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    clock: Clock | None = None,
    chance: Chance | None = None,
    policy: Policy | None = None,
    resolver: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
    progress: Progress | None = None,
) -> App:
    """Open a home, making it on first use.

    Args:
        env: the environment; only `LINKWATCH_*` is looked at.
        flags: settings from the command line, by name; None values are not given.
        clock, chance, policy, resolver, ssl_context: for tests; None takes the real ones.
        progress: told what happens in runs; None tells nobody.
    Raises: ConfigurationError, StoreError. Nothing is left of a home that could not be made.
    """
    home = find_home(folder)
    settings = load_settings(home.settings_file, env=env, flags=flags, fixture=home.fixture is not None)
    _make_missing_parts(home, settings)
    return App(
        home=home,
        settings=settings,
        clock=clock if clock is not None else SystemClock(),
        chance=chance if chance is not None else random.Random(),
        policy=policy if policy is not None else fetch_policy(settings, fixture=home.fixture),
        resolver=resolver,
        ssl_context=ssl_context,
        skew=SKEW_BETWEEN_MACHINES if settings.profile == "aws" else timedelta(0),
        progress=progress if progress is not None else SilentProgress(),
        smtp_password=load_smtp_password(env) if settings.mail == "smtp" else "",
    )


def build_app_without_home(
    *, env: Mapping[str, str], ssl_context: ssl.SSLContext | None = None, clock: Clock | None = None
) -> App:
    """The parts of the profile aws, where no folder is kept, as in a Lambda function. Nothing is opened yet.

    Args: as for `build_app`; all settings come from the environment.
    Raises: ConfigurationError, also without a contact: nobody should have to read all links to find that out.
    """
    home = Home(folder=Path("no-home"))
    settings = load_settings(home.settings_file, env=env)
    if settings.profile != "aws" or not settings.contact:
        raise ConfigurationError("without a home LINKWATCH_PROFILE must be aws, and LINKWATCH_CONTACT must be set.")
    return App(
        home=home,
        settings=settings,
        clock=clock if clock is not None else SystemClock(),
        chance=random.Random(),
        policy=fetch_policy(settings, fixture=home.fixture),
        ssl_context=ssl_context,
        skew=SKEW_BETWEEN_MACHINES,
        in_function=True,
    )


def make_home(folder: Path, *, env: Mapping[str, str], fixture: FixtureMark | None = None) -> Home:
    """Make a new home, a fixture home if `fixture` says what it may reach.

    Raises: ConfigurationError if there is one already or the folder cannot be written, StoreError.
    """
    found = find_home(folder)
    if found.exists:
        raise ConfigurationError(f"{found.folder} is a linkwatch home already; name a new folder with --home.")
    home = Home(folder=found.folder, fixture=fixture)
    settings = load_settings(home.settings_file, env=env, fixture=fixture is not None)
    _make_missing_parts(home, settings)
    return home


def build_app_from_environment() -> App:
    """The home that LINKWATCH_HOME names, ./.linkwatch without it: for doors that get no arguments."""
    return build_app(Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME), env=os.environ)


def scanning_policy(folder: Path) -> Policy:
    """Whose literal addresses a scan may take: those of the home in a folder, if there is one. Makes no home."""
    return _home_policy(find_home(folder).fixture)


def fetch_policy(settings: Settings, *, fixture: FixtureMark | None = None) -> Policy:
    """What may be fetched: the pairs of a fixture home or the public Internet, within the allowed hosts if any are."""
    policy = _home_policy(fixture)
    return AllowedHosts(policy, settings.allowed_hosts) if settings.allowed_hosts else policy


def _home_policy(fixture: FixtureMark | None) -> Policy:
    return FixturePolicy(fixture.pairs) if fixture is not None else PublicPolicy()


def _make_missing_parts(home: Home, settings: Settings) -> None:
    with complete_home(home, settings_text=settings_text()):
        # Made at once, so that a home whose database cannot be is not left half-made.
        if settings.profile == "local" and not home.database.exists():
            open_database(home).close()
