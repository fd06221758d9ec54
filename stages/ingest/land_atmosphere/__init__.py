"""Land-atmosphere series of flux towers: FLUXNET2015, AmeriFlux BASE and its relatives, and tables of any origin."""
