rule paper:
    input:
        PAPER_FILES,
        rules.shown.input,
    output:
        report(update("paper/build/{document}.pdf"), caption="../report/paper.rst", category="Paper"),
    log:
        "logs/{document}.log",
    conda:
        "../envs/octopus.yaml"
    params:
        folders=["--source=paper", "--build=paper/build", "--figures=figures"],
        code=REPORT_CODE,
    message:
        "Paper: {wildcards.document}.pdf"
    shell:
        "octopus report paper {params.folders:q} --document {wildcards.document} --out {output:q} 2>&1 | tee {log:q}"
