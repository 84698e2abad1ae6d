"""Classifiers as a user writes them, found as `own_estimators:Name`."""

import random
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier


def forest(n_estimators: int = 3) -> RandomForestClassifier:
    return RandomForestClassifier(n_estimators)


def of_sizes(num_features: int, num_classes: int) -> DecisionTreeClassifier:  # noqa: ARG001
    return DecisionTreeClassifier()


class Careless(ClassifierMixin, BaseEstimator):
    """Draws from global generators."""

    def fit(self, features: Any, labels: np.ndarray) -> "Careless":  # noqa: ARG002
        self.classes_ = np.unique(labels)
        self.noise_ = random.random() + np.random.rand()  # noqa: NPY002
        return self

    def predict_proba(self, features: Any) -> np.ndarray:
        weights = np.exp(self.noise_ * np.outer(features.sum(axis=1), np.arange(len(self.classes_))) / 10)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class WrongShape(Careless):
    def predict_proba(self, features: Any) -> np.ndarray:
        return super().predict_proba(features)[:-1]
