"""One client's session.

``session`` puts it together and acts on messages and on their errors. Its parts, each with its own state:

- ``transaction/``: blocks, implicit transactions, and what is refused in them;
- ``cancellable_work``: calls in worker threads, and their cancellation; ``copy_state``: the COPY that is under way;
- ``reports``: errors and notices; ``applied_settings``: settings as other parts have them; ``idle_timeouts``;
- ``prepared``, ``portals``, ``cursors``: statements and their rows (``result_rows``, ``forward_rows``);
- ``activity``, ``identity``: what it does, and with which role.

``functions/``, ``relations`` and ``lock_relations`` are what SQL calls and reads of it.
"""
