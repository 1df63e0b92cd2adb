"""Programs of continuous views as data, and what is done with a program after it was planned.

``program`` has the classes. ``canonical`` names a program's traces by what they hold. A program is inlined into another
one (``inlining``), moves to another server (``lending``, ``retargeting``), follows columns and labels that are renamed
(``renaming``, ``labels``), keeps its time zone where it stands in another one (``zones``), and gets another final
relation when the view's options change (``carried``). ``needed_rows`` says which rows of states a statement can meet.
"""
