# Not a part of `all`: snakemake --cores 1 crate
rule crate:
    input:
        rules.all.input,
    output:
        "paper/build/octopus-crate.zip",
    log:
        "logs/crate.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=REPORT_CODE,
    message:
        "RO-Crate of the results: {output}"
    shell:
        "octopus report crate --out {output:q} 2>&1 | tee {log:q}"
