"""The Kubernetes pools as far as they can be held against Prefect without a cluster."""

from __future__ import annotations

import json
import uuid
from typing import Any

import jsonschema
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.utilities.templating import apply_values, find_placeholders

from tests.flows.conftest import ROOT

POOLS = ("cpu", "gpu")


def template(pool: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "deploy" / "kubernetes" / f"{pool}.json").read_text())
    return found


def defaults(pool: str) -> dict[str, Any]:
    properties = template(pool)["variables"]["properties"]
    return {name: rule["default"] for name, rule in properties.items() if "default" in rule}


def manifest(pool: str, **variables: object) -> dict[str, Any]:
    """The Job that Prefect's worker would make."""
    found: dict[str, Any] = apply_values(template(pool)["job_configuration"], defaults(pool) | variables)[
        "job_manifest"
    ]
    return found


def container(pool: str, **variables: object) -> dict[str, Any]:
    found: dict[str, Any] = manifest(pool, **variables)["spec"]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("pool", POOLS)
def test_every_placeholder_is_a_variable_and_every_default_fits_its_rule(pool: str) -> None:
    job, variables = template(pool)["job_configuration"], template(pool)["variables"]
    assert {found.name for found in find_placeholders(job)} <= set(variables["properties"])
    jsonschema.Draft7Validator.check_schema(variables)
    jsonschema.validate(defaults(pool), variables)


@pytest.mark.parametrize("pool", POOLS)
def test_prefect_takes_the_template_for_a_pool_and_refuses_what_it_does_not_allow(
    pool: str, prefect_server: dict[str, str]
) -> None:
    name = f"kubernetes-{pool}-{uuid.uuid4().hex[:8]}"
    with server(prefect_server), get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name=name, type="kubernetes", base_job_template=template(pool)))
        assert client.read_work_pool(name).base_job_template == template(pool)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"finished_job_ttl": "an hour"}, template(pool)["variables"])


def server(prefect_server: dict[str, str]) -> Any:
    return temporary_settings({PREFECT_API_URL: prefect_server["PREFECT_API_URL"]})


def test_a_job_of_the_gpu_pool_asks_for_one_gpu_and_that_of_the_cpu_pool_for_none() -> None:
    resources = container("gpu")["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == 1
    assert container("gpu", gpus=4)["resources"]["limits"]["nvidia.com/gpu"] == 4
    assert "nvidia.com/gpu" not in json.dumps(manifest("cpu"))
    # A selector nobody set is left out, and so hinders nothing.
    assert not manifest("gpu")["spec"]["template"]["spec"].get("nodeSelector")
    chosen = manifest("gpu", gpu_product="H200")["spec"]["template"]["spec"]["nodeSelector"]
    assert chosen == {"nvidia.com/gpu.product": "H200"}


@pytest.mark.parametrize("pool", POOLS)
def test_a_job_finds_the_clone_and_is_not_retried_by_kubernetes(pool: str) -> None:
    assert container(pool)["env"]["BRAID_ROOT"] == "/braid"
    job = manifest(pool)["spec"]
    assert job["backoffLimit"] == 0
    assert job["template"]["spec"]["restartPolicy"] == "Never"
