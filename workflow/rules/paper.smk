rule paper:
    input:
        PAPER_FILES,
        rules.shown.input,
    output:
        report(f"{BUILD}/octopus.pdf", caption="../report/paper.rst", category="Paper"),
    log:
        "logs/paper.log",
    params:
        code=code("report"),
    message:
        "Paper: octopus.pdf"
    shell:
        "octopus report paper --source paper"
        " --build {BUILD} --figures figures --out {output:q} 2>&1 | tee {log:q}"
