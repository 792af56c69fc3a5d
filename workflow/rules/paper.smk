rule paper:
    input:
        PAPER_FILES,
        rules.shown.input,
    output:
        report(update("paper/build/octopus.pdf"), caption="../report/paper.rst", category="Paper"),
    log:
        "logs/paper.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=REPORT_CODE,
    message:
        "Paper: octopus.pdf"
    shell:
        "octopus report paper --source paper --build paper/build --figures figures --out {output:q} 2>&1 | tee {log:q}"


# Everything that is committed, derived a second time; it fails if something differs.
rule verified:
    input:
        COMMITTED_FILES,
        "config/claims.yaml",
    output:
        "paper/build/verified.txt",
    log:
        "logs/verified.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=REPORT_CODE,
    message:
        "Verify: every number anew from the committed rows"
    shell:
        "octopus verify > {output:q} 2> {log:q} || (cat {output:q} {log:q}; false)"
