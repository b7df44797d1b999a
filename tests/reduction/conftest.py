"""Tests that fork processes: another test of the same worker may have imported JAX, which forbids forking to its own users."""

import sys

import pytest

_FORKING = ("test_snapshots.py", "test_store.py", "test_faults.py", "test_cluster.py")


@pytest.fixture(autouse=True)
def _no_jax(request, monkeypatch):
    if request.path.name in _FORKING:
        monkeypatch.delitem(sys.modules, "jax", raising=False)


def pytest_collection_modifyitems(items):
    """JAX's word about forks, which do nothing with it here, is not an error."""
    for item in items:
        if item.path.name in _FORKING:
            item.add_marker(pytest.mark.filterwarnings("ignore:os.fork"))
