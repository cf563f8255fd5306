"""What people and their CI read: terminal, JUnit, JSON, HTML."""
