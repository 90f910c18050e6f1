"""staging: the folder that a consolidator works in, and everything that it can do there.

It may only propose. What it leaves is read back as texts, checked, and published by others.
Nothing here loads pydantic but `box`, which is imported where a model is asked.
"""
