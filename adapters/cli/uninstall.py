"""`threadbook uninstall` stands beside `install`, whose words it takes back."""

from .install import uninstall as command

__all__ = ["command"]
