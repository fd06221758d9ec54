"""One state dict for any number of sensors; identical lanes are forecast as their road; a new network is naive."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.systems.minitraffic.batches import Loaded
from stages.systems.minitraffic.clustering import nearest
from stages.systems.minitraffic.model import MiniTraffic, Neighbours, features, neighbours_on, parameter_count
from tests.systems.minitraffic.small import SETTINGS, network, on_cpu, settings, waves

CPU = torch.device("cpu")


def forecast(made: MiniTraffic, source: Loaded, graph: Neighbours | None = None, windows: int = 4) -> torch.Tensor:
    batch = source.at(np.arange(windows))
    seen = source.normalised(batch.context_BSL)
    known = features(seen, batch.clock_BF, source.panel.level, source.panel.scale)
    with torch.no_grad():
        return torch.as_tensor(made(seen, known, graph))


def complete(series: int, neighbours: int = 5) -> Neighbours:
    projection = np.random.default_rng(0).normal(size=(series, 16)).astype(np.float32)
    return neighbours_on(nearest(projection, np.zeros(series, np.int64), neighbours), CPU)


def test_weights_trained_on_214_roads_load_unchanged_for_40_lanes() -> None:
    roads, lanes = network(told=True), network(1)
    assert forecast(roads, on_cpu(waves(214)), complete(214), 1).shape == (1, 214, 6)
    lanes.load_state_dict(roads.state_dict(), strict=True)
    assert forecast(lanes, on_cpu(waves(40)), complete(40)).shape == (4, 40, 6)
    assert not {214, 40} & {size for weight in roads.state_dict().values() for size in weight.shape}


def test_the_network_is_light() -> None:
    assert 20_000 < parameter_count(network()) <= 120_000


def test_a_new_network_forecasts_the_last_value() -> None:
    source = on_cpu(waves())
    last = source.at(np.arange(4)).context_BSL[..., -1:]
    torch.testing.assert_close(forecast(network(), source, complete(6)), last.expand(-1, -1, 6))


def test_identical_lanes_have_the_forecast_of_their_road() -> None:
    road = waves(1)
    made = network(told=True)
    alone = forecast(made, on_cpu(road))
    lanes = forecast(made, on_cpu(np.repeat(road, 5, axis=1)), complete(5, 4))
    torch.testing.assert_close(lanes, alone.expand(-1, 5, -1), atol=1e-4, rtol=1e-5)


def test_other_neighbours_change_the_forecast_and_a_series_without_any_keeps_it() -> None:
    made, source = network(told=True), on_cpu(waves())
    without, beside = forecast(made, source), forecast(made, source, complete(6))
    assert (without - beside).abs().max() > 0.1
    place = torch.arange(6)[:, None].expand(-1, 5)
    torch.testing.assert_close(forecast(made, source, Neighbours(place, torch.zeros(6, 5, dtype=torch.bool))), without)


def test_the_order_of_the_sensors_does_not_matter() -> None:
    made, values_TS = network(told=True), waves()
    order = np.array([3, 1, 5, 0, 2, 4])
    graph = complete(6, 2)
    inverse = torch.from_numpy(np.argsort(order))
    moved = Neighbours(inverse[graph.place_SK[order]], graph.there_SK[order])
    here, there = forecast(made, on_cpu(values_TS), graph), forecast(made, on_cpu(values_TS[:, order]), moved)
    torch.testing.assert_close(here[:, order], there, atol=1e-4, rtol=1e-5)


def test_a_forecast_has_the_unit_of_its_data() -> None:
    made = network(told=True)
    kmh = forecast(made, on_cpu(waves()), complete(6))
    mph = forecast(made, on_cpu(waves() * np.float32(0.621371)), complete(6))
    torch.testing.assert_close(mph, kmh * 0.621371, atol=1e-3, rtol=1e-4)


def test_a_sensor_that_never_moves_and_one_that_is_missing_have_finite_forecasts() -> None:
    values_TS = waves()
    values_TS[:, 0], values_TS[:, 1], values_TS[5:20, 2] = 0, np.nan, np.nan
    assert torch.isfinite(forecast(network(told=True), on_cpu(values_TS), complete(6))).all()


def test_a_masked_patch_does_not_reach_its_own_reconstruction() -> None:
    made = network(told=True)
    source = on_cpu(waves())
    seen = source.normalised(source.at(np.arange(1)).context_BSL)
    known = torch.zeros(1, 6, 5)
    mask = torch.zeros(1, 6, 6, dtype=torch.bool)
    mask[..., 2] = True
    other = seen.x_BSL.clone()
    other[..., 6:9] += 100  # the steps of the third patch
    with torch.no_grad():
        found = [made.reconstruct(made.encode(seen._replace(x_BSL=x), known, mask)) for x in (seen.x_BSL, other)]
    torch.testing.assert_close(found[0], found[1])


def test_with_stride_one_the_steps_of_a_masked_patch_leak_through_its_neighbours() -> None:
    """Why the stride is the length of a patch here."""
    leaky = settings(network={"stride": 1})
    made = network(told=True, train=leaky)
    source = on_cpu(waves())
    seen = source.normalised(source.at(np.arange(1)).context_BSL)
    mask = torch.zeros(1, 6, 16, dtype=torch.bool)
    mask[..., 6] = True
    other = seen.x_BSL.clone()
    other[..., 6:9] += 100
    with torch.no_grad():
        found = [
            made.reconstruct(made.encode(seen._replace(x_BSL=x), torch.zeros(1, 6, 5), mask))[:, :, 6]
            for x in (seen.x_BSL, other)
        ]
    assert (found[0] - found[1]).abs().max() > 0.01


@pytest.mark.parametrize("series", [40, 400])
def test_graph_attention_costs_k_times_n(series: int) -> None:
    """Elements that the attention makes, counted by what autograd keeps: k for each series, none of N x N."""
    made = network(told=True)
    x_BSD = torch.zeros(1, series, SETTINGS.network.width, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda saved: kept.append(saved.numel()) or saved, lambda saved: saved
    ):
        made.graph(x_BSD, complete(series))
    assert max(kept) == 5 * series * SETTINGS.network.width
