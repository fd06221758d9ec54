"""Commands about the project itself: its params and the code deps of its graph. No stage imports them."""
