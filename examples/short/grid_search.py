"""
Which map: scikit-learn's search
================================

Which map for these data: scikit-learn's cross-validation over recipes, in a pipeline with its scaler.
"""

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import parasol as ps

# somebody's results: 120 temperature fields of rods of two materials
mus = np.random.default_rng(0).uniform(0.5, 2.0, (120, 2))
x = np.linspace(0, 1, 101)
t = x - x**2 / 2
fields = np.where(x < 0.5, t / mus[:, :1], 0.375 / mus[:, :1] + (t - 0.375) / mus[:, 1:])

train, test, seen, unseen = train_test_split(mus, fields, random_state=0)
pipeline = make_pipeline(StandardScaler(), ps.delivery.SurrogateRegressor(tolerance=1e-6))
choices = {"surrogateregressor__recipe": ["linear", "polynomial", "gaussian process"]}
search = GridSearchCV(pipeline, choices, cv=3).fit(train, seen)
print(search.best_params_, f"1 - R² = {1 - search.score(test, unseen):.1e}")
assert search.best_params_["surrogateregressor__recipe"] != "linear"
assert search.score(test, unseen) > 1 - 1e-5
