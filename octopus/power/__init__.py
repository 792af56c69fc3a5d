"""Power and energy that can't be mistaken for something else.

The way of an energy: a file or driver's number gets its unit where it is parsed (:mod:`~octopus.power.quantities`,
:mod:`~octopus.power.hwmon`); a source is chosen by a successful reading (:mod:`~octopus.power.choose`); a process of
its own samples it (:mod:`~octopus.power.sampler`); the power-on test sees it follow a known load
(:mod:`~octopus.power.selftest`) and gives the proof without which :mod:`~octopus.power.energy` computes nothing; and
:mod:`~octopus.power.lint` checks the stored table again. docs/power.md tells how each sensor is read.
"""
