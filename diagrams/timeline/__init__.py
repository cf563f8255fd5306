"""The life of turns as a timeline: who was waited for, and what ran."""
