"""Single bugs, planted one at a time: the first user of every technique."""
