"""Settings for all tests."""

from hypothesis import HealthCheck, settings

# No test depends on how fast the machine is, and every run tries the same examples.
settings.register_profile("bmpaudit", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bmpaudit")
