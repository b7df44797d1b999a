"""The estimator of scikit-learn: its own checks, copies, pipelines, searches, names; and regressors from elsewhere as maps."""

import warnings

import numpy as np
import pytest

import parasol as ps

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform([0.5, -1.0], [2.0, 1.0], (120, 2))
    t = np.linspace(0, 1, 30)
    return x, np.array([np.exp(-a * t) * (1 + b * t) for a, b in x])


@pytest.mark.slow
def test_scikit_learn_takes_it_for_one_of_its_own():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(ps.delivery.SurrogateRegressor("linear"), on_fail=None)
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert len(found) > 40


def test_copies_pipelines_and_searches(data):
    regressor = ps.delivery.SurrogateRegressor("polynomial", tolerance=1e-6, random_state=3)
    assert clone(regressor).get_params() == regressor.get_params()
    pipeline = make_pipeline(StandardScaler(), regressor).fit(*data)
    assert pipeline.score(*data) > 1 - 1e-8
    assert np.mean(cross_val_score(pipeline, *data, cv=3)) > 1 - 1e-6
    search = GridSearchCV(regressor, {"recipe": ["linear", "polynomial"], "n_modes": [1, 3]}, cv=3)
    search.set_params(estimator__tolerance=None).fit(*data)
    assert search.best_params_ == {"recipe": "polynomial", "n_modes": 3}


def test_one_value_and_named_columns(data):
    pandas = pytest.importorskip("pandas")
    x, y = data
    table = pandas.DataFrame({"b": x[:, 1], "a": x[:, 0]})
    regressor = ps.delivery.SurrogateRegressor("polynomial", level=0.9).fit(table, y[:, -1])
    assert regressor.predict(table).shape == (120,)
    assert np.abs(regressor.predict(table) - y[:, -1]).max() < 1e-4
    assert regressor.surrogate_.parameters.names == ("b", "a")
    assert regressor.surrogate_(a=1.0, b=0.5).bound < 1e-2
    assert regressor.predict(table * 1.01).shape == (120,)  # outside the samples too


def test_regressors_from_elsewhere_are_told_before_the_work_that_they_cannot_be_saved(data, tmp_path):
    with pytest.warns(ps.ParasolWarning, match="Ridge stays in this process"):
        ps.fitting.recipe_named(Ridge())
    with pytest.warns(ps.ParasolWarning, match="cannot be saved"):
        surrogate = ps.fit_snapshots(*data, Ridge(), level=None)
    with pytest.raises(ps.ParasolError, match="cannot be saved"):
        ps.save(surrogate, tmp_path / "ridge.parasol")
