"""MiniTraffic: one light network, pre-trained on roads, for forecasts of lanes with little data."""
