"""Power and energy that can't be mistaken for something else.

The way of an energy: a file or driver's number gets its unit where it is parsed (`quantities`, `hwmon`); a source is
chosen by a successful reading (`choose`); a process of its own samples it (`sampler`); the power-on test sees it follow
a known load (`selftest`) and gives the proof without which `energy` computes nothing; and `lint` checks the stored
table again. docs/power.md tells how each sensor is read.
"""
