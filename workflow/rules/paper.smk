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
