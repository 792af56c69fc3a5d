PAPER = {"folders": ["--source=paper", "--build=paper/build", "--figures=figures"], "code": REPORT_CODE}


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
        **PAPER,
        document="octopus",
    message:
        "Paper: {params.document}.pdf"
    shell:
        "octopus report paper {params.folders:q} --document {params.document:q} --out {output:q} 2>&1 | tee {log:q}"


use rule paper as supplement with:
    output:
        report(update("paper/build/supplement.pdf"), caption="../report/paper.rst", category="Paper"),
    log:
        "logs/supplement.log",
    params:
        **PAPER,
        document="supplement",


# Everything that is committed, derived a second time; it fails if something differs.
rule verified:
    input:
        COMMITTED_FILES,
        rules.numbers.output,
        rules.claims.output,
        rules.tables.output,
        rules.figures.output,  # which it looks at where they are drawn
    output:
        "paper/build/verified.txt",
    log:
        "logs/verified.log",
    conda:
        "../envs/octopus.yaml"
    params:
        code=[REPORT_CODE, VISITORS],
    message:
        "Verify: every number anew from the committed rows"
    shell:
        "octopus verify > {output:q} 2> {log:q} || (tee -a {log:q} < {output:q}; false)"


# What visitors see without building anything; of the references alone, also where this machine has results.
rule committed:
    input:
        PAPER_FILES,
        COMMITTED_FILES,
        "config/claims.yaml",
        "config/rules.tsv",
    output:
        update("paper/octopus.pdf"),
        update(expand("notebooks/{notebook}", notebook=NOTEBOOKS)),
        expand("figures/reference/{figure}.png", figure=outputs.figures()),
    log:
        "logs/committed.log",
    conda:
        "../envs/octopus.yaml"
    message:
        "Paper, figures and notebooks of the references, to be committed"
    shell:
        "octopus report committed 2>&1 | tee {log:q}"
