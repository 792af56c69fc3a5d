from octopus_study.report.frame import HERE, Key, make_text
from octopus_study.report.machines import device_name, shown
from octopus_study.report.published import derived

OUTPUT_BYTES = 3 * 224 * 224 * 4


def generated(runs):
    """Yield on which pixels the generated boxes lie: those of each run's own frame."""
    stand_ins = [run for run in runs if any("synthetic-" in name for name in run.datasets)]
    text = "synthetic boxes on synthetic pixels"
    if len(stand_ins) < len(runs):
        others = " and ".join(device_name(run) for run in stand_ins)
        text = "synthetic boxes on VisDrone pixels" + (f", on {others} on synthetic ones" if others else "")
    yield shown(runs, "generated", text)


def bounds(frame):
    """Yield the published kernels as a multiple of the write-only bound: the output (float32, three channels) over the
    memory bandwidth stated for the Jetson."""
    bandwidth = frame.find("published.machines.jetson-orin-nano.memory_bandwidth")
    for crop in (
        frame.select("published", "stage_timing", method="published", quantity="crop_resize")
        if bandwidth
        else ()
    ):
        normalize = frame[crop.id.replace("crop_resize", "normalize")]
        bound = crop.n * OUTPUT_BYTES / (bandwidth.value * 1e6)
        note = f"{OUTPUT_BYTES} bytes per crop at {bandwidth.text}"
        for name, unit, value in (
            ("write_bound", "ms", bound),
            ("times_write_bound", "ratio", (crop.value + normalize.value) / bound),
            ("share_of_write_bound", "fraction", bound / (crop.value + normalize.value)),
        ):
            yield derived(crop, "jetson-orin-nano", unit, value, note, n=crop.n, quantity=name)


def cached_bounds(frame):
    """Yield a sentence that names where the write bound stays within a cache; absent without the stage timings."""
    machines = frame.machines("stage_timing")
    found = [
        f"{frame.fact(machine, 'name')} at n = {number.n}"
        for machine in machines
        for number in frame.select(
            machine,
            "stage_timing",
            workload="visdrone",
            method="write-bound",
            quantity="crop_resize_normalize",
            derived="within_cache",
        )
        if number.text == "yes"
    ]
    where = " and ".join(dict.fromkeys(found))
    text = f"Partly within the cache, so no memory bound: write bound on {where}." if found else ""
    if machines:
        first = frame[
            Key(min(machines, key=lambda name: (name != HERE, name)), "stage_timing", quantity="measured_on")
        ]
        yield make_text(Key("shown", "stage_timing", quantity="within_cache"), first.source, text)
