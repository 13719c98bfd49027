"""What holds for every test of the kit: Hypothesis has no deadline, because the machines of a build differ in speed."""

from hypothesis import HealthCheck, settings
from tests.command_line import runcert  # noqa: F401  # a fixture for every test

settings.register_profile("kit", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kit")
