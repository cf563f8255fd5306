"""The same machines for other checkers: TLA+ and Promela, counted and compared."""
