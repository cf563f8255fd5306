"""How often each move was taken, and each refusal met."""
