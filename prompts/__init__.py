"""Prompts are Markdown, loaded by name."""
