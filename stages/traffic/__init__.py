"""Traffic series: windows without copies, scaling, masked errors, the clock."""
