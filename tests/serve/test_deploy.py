"""What stands in ``deploy/`` fits the server it is for."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from grotta.serve import Settings, make_app
from grotta.serve.settings import gather

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_dashboard_asks_only_for_metrics_that_there_are():
    text = (DEPLOY / "grafana" / "dashboards" / "grotta.json").read_text()
    json.loads(text)
    asked = set(re.findall(r"\bgrotta_[a-z_]+", text))
    service = make_app(Settings()).state.service
    described = {family.name for family in service.metrics.registry.collect()}
    told = {name + suffix for name in described for suffix in ("", "_total", "_bucket", "_sum", "_count")}
    told |= {"grotta_estimated_accuracy", "grotta_agreement"}  # once a stream has them
    assert len(asked) >= 8
    assert asked <= told, asked - told


def test_the_example_settings_are_accepted():
    settings = gather({}, {}, DEPLOY / "serve.toml")
    assert settings.models[0].path == "fashion_resnet8"
    assert set(tomllib.loads((DEPLOY / "serve.toml").read_text())) <= {*Settings.__dataclass_fields__, "method"}


def test_files_for_other_programs_are_well_formed():
    yaml = pytest.importorskip("yaml")
    files = [*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.yml")]
    assert len(files) == 4
    assert all(isinstance(yaml.safe_load(file.read_text()), dict) for file in files)


def test_environment_variables_are_ones_that_the_server_reads():
    text = "".join((DEPLOY / name).read_text() for name in ("Dockerfile", "compose.yaml", "grotta.service"))
    known = {*Settings.__dataclass_fields__, "method", "preset", "options", "token_file", "config"}
    assert {name.lower() for name in re.findall(r"GROTTA_SERVE_([A-Z_]+)", text)} <= known
