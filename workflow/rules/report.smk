rule numbers:
    input:
        rules.measured.input,
        REFERENCE_FILES,
        PUBLISHED_FILES,
    output:
        report(f"{BUILD}/numbers.csv", caption="../report/numbers.rst", category="Numbers"),
    log:
        "logs/numbers.log",
    params:
        folders=f"--results={RESULTS} --reference={CONFIG.reference_dir} --published=data/published",
        code=code("report"),
    message:
        "Report: every number, from this run, the reference and the published tables"
    shell:
        "octopus report numbers {params.folders} --out {output:q} 2>&1 | tee {log:q}"


rule claims:
    input:
        numbers=rules.numbers.output,
        claims="config/claims.yaml",
    output:
        report(f"{BUILD}/claims.csv", caption="../report/claims.rst", category="Claims"),
    log:
        "logs/claims.log",
    params:
        code=code("report"),
    message:
        "Report: verdict on each claim"
    shell:
        "octopus report claims --numbers {input.numbers:q}"
        " --claims {input.claims:q} --out {output:q} 2>&1 | tee {log:q}"


rule tables:
    input:
        numbers=rules.numbers.output,
        claims=rules.claims.output,
    output:
        expand(f"{BUILD}/tables/{{table}}.{{kind}}", table=tables.NAMES, kind=["typ", "tex", "md"]),
    log:
        "logs/tables.log",
    params:
        code=code("report"),
    message:
        "Report: tables for Typst, LaTeX and Markdown"
    shell:
        "octopus report tables --numbers {input.numbers:q}"
        " --claims {input.claims:q} --out-dir {BUILD}/tables 2>&1 | tee {log:q}"


rule macros:
    input:
        rules.numbers.output,
    output:
        multiext(f"{BUILD}/numbers", ".typ", ".tex"),
    log:
        "logs/macros.log",
    params:
        code=code("report"),
    message:
        "Report: the numbers as macros for Typst and LaTeX"
    shell:
        "octopus report macros --numbers {input:q} --out-dir {BUILD} 2>&1 | tee {log:q}"


rule figure:
    input:
        rules.numbers.output,
    output:
        pdf="figures/{figure}.pdf",
        png=report("figures/{figure}.png", caption="../report/figure.rst", category="Figures"),
    log:
        "logs/figure_{figure}.log",
    params:
        code=code("report"),
    message:
        "Report: figure {wildcards.figure}"
    shell:
        "octopus report figure {wildcards.figure} --numbers {input:q} --out {output.pdf:q} 2>&1 | tee {log:q}"


rule shown:
    input:
        rules.claims.output,
        rules.tables.output,
        rules.macros.output,
        expand(["figures/{figure}.pdf", "figures/{figure}.png"], figure=figures.NAMES),
    message:
        "All figures, tables and claims are built"
