# From data to paper: snakemake --cores 1
# Rules are in workflow/rules, settings in config/config.yaml, and every step is an `octopus` command.

from snakemake.utils import min_version

min_version("9.0")


configfile: "config/config.yaml"


if config.get("effort") in ("core", "quick"):  # shorter runs have settings of their own

    configfile: f"config/{config['effort']}.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/lock.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/studies.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/page.smk"


rule all:
    default_target: True
    input:
        chosen_manifests(),
        rules.measured.input,
        rules.numbers.output,
        rules.shown.input,
        rules.paper.output,
        rules.supplement.output,
        rules.page.output,
    message:
        "All is measured on {MACHINE}, and shown"


# snakemake --cores 1 arena: that study alone, and all that shows it.
for name in STUDIES:

    rule:
        name:
            name
        input:
            rules.all.input,
        message:
            "All of {rule} is measured on {MACHINE}, and shown"
