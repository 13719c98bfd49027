"""What holds for every test of the kit: Hypothesis has no deadline, because the machines of a build differ in speed."""

import pytest
from hypothesis import HealthCheck, settings
from tests.command_line import runcert  # noqa: F401  # a fixture for every test

from runcert import masking

settings.register_profile("kit", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kit")


@pytest.fixture(autouse=True)
def no_known_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins as a new process does: what it masks does not depend on the tests before it."""
    monkeypatch.setattr(masking, "_known", {})
