STUDY = {
    "settings": study_settings,
    "code": lambda wildcards: code(wildcards.study),
    "title": study_title,
    "takes": takes,
}
# What a cluster is asked for: one GPU, and its node for nothing else. On a CPU all studies ran with 24 GB.
NEEDS = {"gpu": int(DEVICE == "cuda"), "mem_mb": 32000, "runtime": minutes, "slurm_extra": "--exclusive"}


# A study takes all cores, so that nothing else runs while it measures. What an earlier run left stays until this one is over.
# The log has each comparison; the terminal has warnings, errors and the last line.
rule study:
    input:
        manifest,
    output:
        rows=update(f"{RESULTS}/{{study}}.csv"),
        provenance=update(f"{RESULTS}/{{study}}.json"),
    log:
        "logs/{study}.log",
    conda:
        "../envs/octopus.yaml"
    threads: ALL_CORES
    resources:
        **NEEDS,
    params:
        **STUDY,
    message:
        "{wildcards.study}: {params.title}, on {MACHINE}{params.takes} ({LEFT})"
    shell:
        "octopus measure {wildcards.study:q} {params.settings:q} --manifest {input:q} --out {output.rows:q} 2>&1 | tee {log:q} | sed -unE '\\% (WARNING|ERROR|CRITICAL) |^error|Error\\b|^[a-z_]+: done%p'"


rule measured:
    input:
        expand(f"{RESULTS}/{{study}}.{{part}}", study=CHOSEN, part=["csv", "json"]),
    message:
        "All chosen studies are measured on {MACHINE}"
