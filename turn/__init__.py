"""One turn: its declared table, roster, settlement, memory and grants."""
