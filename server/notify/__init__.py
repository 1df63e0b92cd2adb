"""LISTEN and NOTIFY: channels, the notifications of continuous views, and their way to one client."""
