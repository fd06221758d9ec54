"""Independence tests of the engine under the peer's names."""
