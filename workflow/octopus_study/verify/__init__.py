"""``octopus verify``: whether all that a reader sees follows from the stored rows.

The checks walk from the rows to the paper again, partly by code of their own: plain NumPy on the rows that a number's
selector takes, without the code that derived it.
"""
